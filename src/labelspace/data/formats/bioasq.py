"""BioASQ task A: ``{"articles": [{"pmid": ..., "title": ..., "abstractText": ..., "meshMajor": [...]}, ...]}``.

The released file has 16 million articles: it is read article by article. JSON lines of articles are read too. The text
is the title, a line end and the abstract.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path

from labelspace.data.files import reading, writing_text
from labelspace.data.formats.base import RecordFormat, check_has_texts
from labelspace.data.formats.json_stream import JsonStream, documents
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location, Record, to_record, to_records
from labelspace.types import Dataset

LISTS = "articles", "documents"  # of training articles, of articles to be tagged
_ABSTRACTS = "abstractText", "abstract"
_ARTICLE = frozenset(("pmid", "title", "meshMajor", "journal", "year", *_ABSTRACTS))
_FILE = re.compile(rf'(\{{\s*"({"|".join(LISTS)})"\s*:\s*)?\[\s*\{{')
_KEY = re.compile(r'"(\w+)"\s*:')


def records(path: str | Path, options: ReadOptions) -> Iterator[Record]:
    """Read the articles; the id is the PMID. Articles that have no ``meshMajor`` have no labels."""
    with reading(path) as file:
        stream = JsonStream(path, file, options.encoding)
        rows = _lines(stream) if stream.first_key() in _ARTICLE else documents(stream)
        for number, (location, article) in enumerate(rows):
            yield _record(article, number, location)


def _lines(stream: JsonStream) -> Iterator[tuple[Location, dict[str, object]]]:
    while stream.peek():
        location, article = stream.location, stream.value()
        if not isinstance(article, dict):
            raise location.expected("an article, {...}, per line", f"one is {article!r:.40}", "correct the line")
        yield location, article


def _record(article: dict[str, object], number: int, location: Location) -> Record:
    abstract = next((article[key] for key in _ABSTRACTS if key in article), None)
    parts = [part for part in (article.get("title"), abstract) if part is not None]
    wrong = next((part for part in parts if not isinstance(part, str)), None)
    if wrong is not None or not parts:
        problem = "there is neither" if not parts else f"one is {wrong!r:.40}"
        raise location.expected("'title' and 'abstractText' to be texts", problem, "correct the article")
    text = "\n".join(filter(None, map(str, parts)))
    row = {"id": article.get("pmid"), "text": text, "labels": article.get("meshMajor")}
    return to_record(row, number, location)


def recognizes(head: Sequence[str]) -> bool:
    """Return whether the lines are the start of such a file.

    >>> recognizes(['{"articles": [', '{"pmid": "1", "title": "Statins", "meshMajor": ["Humans"]},'])
    True
    """
    text = "\n".join(head).lstrip()
    if _FILE.match(text):
        return _is_article(set(_KEY.findall(text)))
    try:
        first = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and _is_article(set(first))


def _is_article(keys: Set[str]) -> bool:
    return "pmid" in keys and not keys.isdisjoint({"meshMajor", *_ABSTRACTS})


def write(path: str | Path, dataset: Dataset) -> None:
    """Write articles, one per line: the first line of a text is the title."""
    check_has_texts(dataset, path)
    _write_list(path, LISTS[0], map(_article, to_records(dataset)))


def _article(record: Record) -> dict[str, object]:
    title, _, abstract = (record.text or "").partition("\n")
    if not title or not abstract:  # else reading would lose the line end
        title, abstract = record.text or "", ""
    return {"pmid": record.id, "title": title, "abstractText": abstract, "meshMajor": list(record.labels)}


def write_predictions(path: str | Path, predictions: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Write predicted labels, by PMID, as BioASQ takes them: ``{"documents": [{"pmid": ..., "labels": [...]}]}``."""
    rows = ({"pmid": int(id_) if id_.isdecimal() else id_, "labels": list(labels)} for id_, labels in predictions)
    _write_list(path, LISTS[1], rows)


def _write_list(path: str | Path, key: str, rows: Iterable[Mapping[str, object]]) -> None:
    with writing_text(path) as file:
        file.write(f"{{{json.dumps(key)}: [")
        for number, row in enumerate(rows):
            file.write(("," if number else "") + "\n" + json.dumps(row, ensure_ascii=False))
        file.write("\n]}\n")


FORMAT = RecordFormat("bioasq", "BioASQ", (".json",), write, recognizes, documents=records)
