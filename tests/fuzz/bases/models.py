"""Tiny fitted models of every method and setting, saved as folders: what the model mutators begin with."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from labelspace.data.side_columns import with_values
from labelspace.data.synthetic import planted
from labelspace.index.exact import Exact
from labelspace.models.registry import METHODS, create, method
from labelspace.tagger import Tagger
from labelspace.tagger.held_out import HeldOutDocuments
from labelspace.types import Columns, Dataset, Fields, Hierarchy, LabelSpace, SideColumns, TextWithValues
from tests.models.text2text.t5_folder import write_t5_folder
from tests.models.variants import OTHERS, PRETRAINED, SMALL

NEED = {"secseq": "torch", "mlc2seq": "torch", "text2text": "transformers"}
READS_TEXT = ("blend", "lexical", "secseq", "text2text", "xmlcnn")  # in some setting, so features will not do
QUICK = {
    "embedding_dim": 16, "hidden_dim": 8, "decoder_dim": 8, "word_dim": 8, "input_layers": 8, "output_layers": 8,
    "epochs": 1, "boosting_rounds": 5, "n_folds": 1, "root_dim": 4, "code_size": 4, "vocab_size": 60,
    "max_length": 32, "n_samples": 8, "beam_size": 4, "branching_factor": 4, "n_heads": 2,
}  # fmt: skip
"""What a setting is made smaller by: the shape of the files matters, not what was learned."""

Fitted = Callable[[], Tagger]


def save(tagger: Tagger, folder: Path) -> None:
    """Save a model without its card, which loading ignores."""
    tagger.save(folder)
    (folder / "README.md").unlink()


def makers() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """The name of each model, which starts with that of its method, and who makes its folder."""
    for name, fitted in _models():
        yield name, lambda folder, fitted=fitted: save(fitted(), folder)


def _models() -> Iterator[tuple[str, Fitted]]:
    for name in METHODS:
        if not find_spec(NEED.get(name, "numpy")):
            continue
        for number, params in enumerate([SMALL.get(name, {}), *OTHERS.get(name, [])]):
            ready_made = number % 2 == 1 and name not in READS_TEXT
            yield f"{name}-{number}", _fitted(name, params, ready_made)
    if find_spec(NEED["text2text"]):
        for setting, params in PRETRAINED.items():
            yield f"text2text-{setting}", _pretrained(params)
    for kind in ("quantized", "ivf", "hnsw") if find_spec("faiss") else ("quantized",):
        yield f"glas-{kind}", _fitted("glas", {"index": kind, "recall_target": 0.01, "patience": 1})
    for storage in ("int8", "int8+float32"):
        yield f"glas-{storage}", _stored(storage)
    yield "neighbors-table", _table
    for kind in ("texts", "features"):
        yield f"neighbors-learned-{kind}", _learned(kind == "features")
    yield "blend-beside", _beside
    for name in ("neighbors", "lexical"):
        yield f"{name}-edited", _edited(name)
    yield "lexical-labels", lambda: Tagger("lexical").fit_labels(documents().labels)
    yield "one_vs_rest-hashing", _fitted("one_vs_rest", {}, features="hashing", feature_params={"bits": 8})
    yield "neighbors-stems", _fitted("neighbors", {}, feature_params={"stemming": "english", "min_df": 1})


def documents() -> Dataset:
    """A few documents with texts, features, names, synonyms and a hierarchy."""
    drawn = planted(n=60, d=80, l=12, branching=3, texts=True, seed=3)
    names, edges = [f"label {i} w{i}" for i in range(12)], drawn.labels.hierarchy.edges
    synonyms = [[f"alias {i}", f"w{2 * i}"] if i % 3 else [] for i in range(12)]
    return replace(drawn, labels=LabelSpace(names, synonyms, hierarchy=Hierarchy.from_edges(edges, 12)))


def _fitted(name: str, params: dict, ready_made: bool = False, **options: Any) -> Fitted:
    def fit() -> Tagger:
        quick = {key: value for key, value in QUICK.items() if key in method(name).params}
        quick |= {key: value for key, value in params.items() if key not in QUICK or isinstance(value, str)}
        given = documents() if ready_made else replace(documents(), X=None)
        return Tagger(create(name).set_params(**quick), **options).fit_dataset(given)  # some have no effect

    return fit


def _edited(name: str) -> Fitted:
    """With labels that were renamed, merged and retired after the training."""

    def fit() -> Tagger:
        names = documents().labels.names
        tagger = Tagger(name).fit_dataset(replace(documents(), X=None))
        tagger.rename_label(names[3], "one more name").merge_labels(names[4], names[5]).retire_label(names[2])
        return tagger.add_label("unheard of", alt=["w1"], description="a word")

    return fit


def _pretrained(params: dict) -> Fitted:
    """Fine-tuned from a T5 of random weights."""

    def fit() -> Tagger:
        given = replace(documents(), X=None)
        with TemporaryDirectory() as folder:
            write_t5_folder(folder, [*given.texts, *given.labels.names])
            return Tagger("text2text", **{**params, "pretrained": folder}).fit_dataset(given)

    return fit


def _stored(storage: str) -> Fitted:
    """With an index of another storage, as is chosen for more labels."""

    def fit() -> Tagger:
        tagger = _fitted("glas", {})()
        index = tagger.model.index_
        tagger.model.index_ = Exact(index.arrays_["vectors"], index.ids, storage)
        return tagger

    return fit


def _learned(ready_made: bool) -> Fitted:
    """That went on learning, so that it has a lineage, and stored documents to compare its versions by."""

    def learn() -> Tagger:
        tagger = _fitted("neighbors", {}, ready_made)()
        given = documents().rows(range(8))
        given = replace(given, texts=None) if ready_made else replace(given, X=None)
        tagger.held_out_ = HeldOutDocuments.of(given)
        return tagger.learn(given)

    return learn


def beside(text: str, columns: SideColumns) -> TextWithValues:
    """A text with a value for each column beside it."""
    row = dict.fromkeys(columns.numeric, len(text) % 7) | dict.fromkeys(columns.categorical, text[:2])
    return with_values(text, {**row, columns.vectors: [1.0, 0.0, len(text) % 3]}, columns, "a document")


def _beside() -> Tagger:
    """With columns beside the text, weights of documents, and stored documents."""
    columns = SideColumns(("price",), ("brand",), "emb")
    given = replace(documents(), X=None, fields=Fields(beside=columns))
    given = replace(given, texts=[beside(text, columns) for text in given.texts])
    tagger = Tagger("blend", members="neighbors,one_vs_rest", n_folds=1, boosting_rounds=5)
    weighted = replace(given, sample_weight=np.linspace(0.5, 2, len(given)))
    tagger.fit_dataset(weighted, label_weight={given.labels.names[0]: 2.0})
    tagger.held_out_ = HeldOutDocuments.of(given.rows(range(8)))
    return tagger


def _table() -> Tagger:
    """From a table, so that there are columns."""
    given = documents()
    columns = Columns(("title", "price"), (("brand",), ("L0", "L1")))
    names = [f"{('brand', 'L0', 'L1')[i % 3]}: {i}" for i in range(12)]
    return Tagger("neighbors").fit_dataset(replace(given, X=None, labels=LabelSpace(names), columns=columns))
