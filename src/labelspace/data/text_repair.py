r"""Texts that were decoded by the wrong encoding, and control characters in them: found, and repaired where certain.

UTF-8 that was read as Windows-1252 or Latin-1 shows its bytes as characters: ``Ã©`` for é, ``â€™`` for ’.
"""

import re

_CP1252 = {byte: char for byte in range(0x80, 0xA0) if (char := bytes([byte]).decode("cp1252", "ignore"))}
_AS_BYTE = {ord(char): byte for byte, char in _CP1252.items()}
_PUNCTUATION = {chr(byte): _CP1252[byte] for byte in (0x85, *range(0x91, 0x98))}  # … ‘ ’ “ ” • – —
_CONTINUED = "[\x80-\xbf" + "".join(map(chr, _AS_BYTE)) + "]"  # a byte 80 to bf, in Latin-1 or Windows-1252
_SEQUENCE = re.compile(
    f"[\xc2-\xc5\xce-\xd1\xd7-\xd9]{_CONTINUED}|[\xe0-\xef]{_CONTINUED}{{2}}|[\xf0-\xf4]{_CONTINUED}{{3}}"
)
_TYPICAL = re.compile(f"[\xc2\xc3]{_CONTINUED}|\xe2\u20ac{_CONTINUED}|\ufffd|[\xa0-\ufffc][\x80-\x9f]")  # never meant
_SUSPECT = re.compile(f"[\xc2-\xf4]{_CONTINUED}|\ufffd|[\xa0-\ufffc][\x80-\x9f]")
# The last: C1 after another character beyond ASCII is a piece of a wrong encoding, and not Windows-1252.
_C1 = re.compile("[\x80-\x9f]")
_ANY_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff]")  # found in a seventh of the time
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufeff]|(?<![\x80-\uffff])[\x80-\x9f]+")


def is_garbled(text: str) -> bool:
    r"""Return whether a text has characters that wrong encodings leave.

    >>> is_garbled("CafÃ© au lait"), is_garbled("Café au lait"), is_garbled("caf\ufffd"), is_garbled("LIBERTÉ»")
    (True, False, True, False)
    """
    if text.isascii() or _SUSPECT.search(text) is None:
        return False
    return _TYPICAL.search(text) is not None or ungarbled(text) != text


def ungarbled(text: str) -> str:
    r"""Return the text as it was before it was decoded wrongly, if that is certain; else the text itself.

    It is certain if all characters beyond ASCII are bytes of UTF-8 sequences, of the usual scripts. The encoding was
    Windows-1252 or Latin-1; or Latin-2, if there are bytes that it has no characters for.

    >>> ungarbled("CafÃ© â€œNoirâ€\x9d"), ungarbled("Café Ã©"), ungarbled("LIBERTÉ»")
    ('Café “Noir”', 'Café Ã©', 'LIBERTÉ»')
    """
    for _ in range(2):  # some texts went wrong twice
        try:
            text = _bytes_before(text).decode()
        except ValueError:  # no bytes of another encoding, or no UTF-8
            break
    return text


def _bytes_before(text: str) -> bytes:
    """Return the bytes that were decoded wrongly; raise ValueError if it is not certain that they were."""
    if not text.isascii() and _SUSPECT.search(text) is not None:
        if _SEQUENCE.sub("", text).isascii():
            return bytes(_AS_BYTE.get(ord(char), ord(char)) for char in text)
        if _C1.search(text) is not None:  # else two letters of Central Europe may look like a sequence
            return text.encode("iso8859-2")
    raise ValueError


def has_control(text: str) -> bool:
    r"""Return whether a text has control characters other than white space.

    >>> has_control("a\tb\n"), has_control("a\x00b")
    (False, True)
    """
    return _ANY_CONTROL.search(text) is not None and _CONTROL.search(text) is not None


def without_control(text: str) -> str:
    r"""Return the text without control characters; the quotes and dashes of Windows-1252 become what they are.

    >>> without_control("it\x92s\x00 \x1bhere")
    'it’s here'
    """
    if _ANY_CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(lambda found: "".join(_PUNCTUATION.get(char, "") for char in found[0]), text)
