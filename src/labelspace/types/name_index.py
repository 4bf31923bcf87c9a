"""From names to numbers, by hashes: for names that are read when asked for, of which a dict would keep all."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np


class NameIndex(Mapping[str, int]):
    """The number of each name, in 12 bytes a name; names are read again to be compared.

    >>> index = NameIndex(("cat", "dog"))
    >>> index["dog"], index.get("cow"), len(index)
    (1, None, 2)
    """

    def __init__(self, names: Sequence[str]) -> None:
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        order = np.argsort(hashes, kind="stable")
        self._names, self._hashes, self._order = names, hashes[order], order.astype(np.int32)

    def __getitem__(self, name: str) -> int:
        wanted = hash(name)
        for at in range(int(np.searchsorted(self._hashes, wanted)), len(self._hashes)):
            if self._hashes[at] != wanted:
                break
            number = int(self._order[at])
            if self._names[number] == name:
                return number
        raise KeyError(name)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def duplicate(self) -> str | None:
        """A name that is there twice; None where all are different."""
        for at in np.flatnonzero(np.diff(self._hashes) == 0).tolist():
            name = self._names[int(self._order[at + 1])]
            if self[name] != int(self._order[at + 1]):
                return name
        return None
