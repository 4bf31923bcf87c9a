"""The values of a JSON text of any size, one by one: only one document is in memory at a time."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from labelspace.data.files import UTF_8, too_long
from labelspace.data.records import Location, parse_object
from labelspace.errors import DataError
from labelspace.types.limits import MAX_LINE_BYTES

BLOCK = 2**18  # bytes read at a time
_CUT = 16  # characters before the end at which an error may mean that more has to be read: -Infinity, \\ud83d\\ude00
_AHEAD = 2**12  # characters in which the first key of an object is looked for
_NO_SPACE = re.compile(r"[^ \t\r\n]")
_FIRST_KEY = re.compile(r'\{[ \t\r\n]*"([^"\\]*)"')


class JsonStream:
    """A reader of the values of a file, in order; a malformed value is an error with its line.

    >>> import io
    >>> stream = JsonStream("a.json", io.BytesIO(b'[{"a": 1}, {"a": 2}]'))
    >>> stream.take("["), stream.value(), stream.take(","), stream.value(), stream.take("]"), stream.peek()
    (True, {'a': 1}, True, {'a': 2}, True, '')
    """

    def __init__(self, path: str | Path, file: BinaryIO, encoding: str | None = None) -> None:
        self.n_read = 0  # characters
        self._path = path
        self._file = file
        self._encoding = encoding or UTF_8
        self._decoder = codecs.getincrementaldecoder(self._encoding)()
        self._parse = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0  # position in the text
        self._line, self._counted = 1, 0  # the line of a position in the text
        self._more()
        self._text = self._text.removeprefix("\ufeff")

    @property
    def location(self) -> Location:
        """The location of what is read next."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return Location(self._path, self._line)

    def peek(self) -> str:
        """Return the next character that is not a space; empty at the end of the file."""
        while True:
            self._at = found.start() if (found := _NO_SPACE.search(self._text, self._at)) else len(self._text)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, character: str) -> bool:
        """Read this character if it is next, and return whether it was."""
        found = self.peek() == character
        self._at += found
        return found

    def first_key(self) -> str:
        """Return the first key of the next object without reading it; empty if there is none."""
        self.peek()
        while len(self._text) - self._at < _AHEAD and self._more():
            pass
        found = _FIRST_KEY.match(self._text, self._at)
        return found[1] if found else ""

    def value(self) -> object:
        """Read the next value."""
        self.peek()
        while True:
            try:
                value, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                may_be_cut = error.pos >= len(self._text) - _CUT or error.msg.startswith("Unterminated string")
                if may_be_cut and self._more():
                    continue
                raise self._malformed(error.msg, error.pos) from error
            except (ValueError, RecursionError) as error:
                raise self._malformed("it is nested too deeply, or a number is too long", self._at) from error
            if end < len(self._text) or not self._more():  # at the end, a number may be cut
                text = self._text[self._at : end]
                if isinstance(value, dict) and ("\\ud" in text or "\\uD" in text):
                    parse_object(text, self.location)  # raises for half a character, which only an escape can be
                self._at = end
                return value

    def _more(self) -> bool:
        """Read the next block, at least as long as what is left, so that a long value is parsed only a few times."""
        left = len(self._text) - self._at
        if left > MAX_LINE_BYTES.value:
            raise too_long(self._path, self.location.line)
        block = self._file.read(max(BLOCK, left))
        try:
            more = self._decoder.decode(block, final=not block)
        except UnicodeError as error:
            before = self._text.count("\n", self._at) + block[: getattr(error, "start", 0)].count(b"\n")
            location = Location(self._path, self.location.line + before)
            rule, remedy = f"{self._encoding} text", "save it as UTF-8, or name its encoding"
            raise location.expected(rule, "some bytes cannot be decoded", remedy, options=["encoding"]) from error
        if block or more:
            self._line = self.location.line
            self._text = self._text[self._at :] + more
            self._at = 0
            self._counted = 0
            self.n_read += len(more)
        return bool(block or more)

    def _malformed(self, reason: str, position: int) -> DataError:
        line = self.location.line + self._text.count("\n", self._at, position)
        problem = f"it is malformed ({reason})"
        return Location(self._path, line).expected("JSON", problem, "correct it, or download it again")


def documents(stream: JsonStream) -> Iterator[tuple[Location, dict[str, object]]]:
    """Return the objects of an array, or of the one list of objects that an object has; its other fields are skipped.

    >>> import io
    >>> stream = JsonStream("a.json", io.BytesIO(b'{"version": 2, "data": [{"text": "red apple"}]}'))
    >>> list(documents(stream))
    [(Location(path='a.json', line=1), {'text': 'red apple'})]
    """
    stream.peek()
    start, list_key = stream.location, None
    if stream.take("["):
        list_key = ""
        yield from _objects(stream)
    elif stream.take("{"):
        for _ in _items(stream, "}"):
            key = _key(stream)
            if not stream.take("["):
                stream.value()
            elif stream.peek() != "{":
                for _ in _items(stream, "]"):
                    stream.value()
            elif list_key is not None:
                problem = f"there are {list_key!r:.40} and {key!r:.40}"
                raise stream.location.expected("one list of documents", problem, "remove one of them")
            else:
                list_key = key
                yield from _objects(stream)
    if list_key is None:
        problem = "there is none"
        raise start.expected("[{...}, ...], or an object with such a list", problem, "use .jsonl for JSON lines")
    if stream.peek():
        problem = f"found {stream.peek()!r}"
        raise stream.location.expected("the end of the file after the documents", problem, "use .jsonl for JSON lines")


def _objects(stream: JsonStream) -> Iterator[tuple[Location, dict[str, object]]]:
    """Return the objects of an array whose bracket is read."""
    for _ in _items(stream, "]"):
        stream.peek()
        location, value = stream.location, stream.value()
        if not isinstance(value, dict):
            problem = f"one is {value!r:.40}"
            raise location.expected("a JSON object per document", problem, 'write {"text": "...", "labels": [...]}')
        yield location, value


def _items(stream: JsonStream, end: str) -> Iterator[None]:
    """Stop before each item, for the caller to read it; commas are read."""
    if stream.take(end):
        return
    yield
    while not stream.take(end):
        if not stream.take(","):
            problem = f"found {stream.peek()!r}" if stream.peek() else "the file ends"
            raise stream.location.expected(f"',' or {end!r}", problem, "correct it, or download it again")
        yield


def _key(stream: JsonStream) -> str:
    stream.peek()
    location, key = stream.location, stream.value()
    if not isinstance(key, str) or not stream.take(":"):
        raise location.expected('"key": value', f"found {key!r:.40}", "correct it, or download it again")
    return key
