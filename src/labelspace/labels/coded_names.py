"""Names that begin with a code, as in ``n00001740 entity``: the code says nothing of what the label means."""

from collections.abc import Sequence

from labelspace.types import LabelSpace

MIN_CODED_SHARE = 0.9  # of names that start with something like a code, from which on these are taken as codes


def split_codes(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the code of each name, or an empty text, and the rest of the name.

    >>> split_codes(["n01 cat", "n02 wild dog"]), split_codes(["7 up", "wild dog"])
    ([('n01', 'cat'), ('n02', 'wild dog')], [('', '7 up'), ('', 'wild dog')])
    """
    heads = [name.partition(" ") for name in names]
    n_coded = sum(bool(rest) and any(map(str.isdigit, code)) for code, _, rest in heads)
    are_coded = n_coded >= MIN_CODED_SHARE * max(len(heads), 1)
    return [
        (head[0], head[2]) if are_coded and head[2] else ("", name) for head, name in zip(heads, names, strict=True)
    ]


def texts_without_codes(labels: LabelSpace) -> list[str]:
    """Return each label's name, without its code, and its synonyms as one text."""
    synonyms = labels.synonyms or [[]] * len(labels)
    named = zip(split_codes(labels.names), synonyms, strict=True)
    return [". ".join([name, *also]) for (_, name), also in named]
