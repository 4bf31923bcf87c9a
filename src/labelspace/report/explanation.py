"""Explanations in a terminal: the text with its words marked, and what else speaks for a label."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from labelspace.explain import Explanation, WordShare
from labelspace.report.terminal import printable

FOR, AGAINST = "bold green", "bold red"
BAR = 20  # characters of the longest bar
MAX_TEXT = 900  # characters of a text that are shown: the passages that count most of a longer one
AROUND = 40  # characters of context on either side of a marked word
GAP = " … "
Passage = tuple[int, int]


def passages(text: str, marked: Sequence[WordShare], longest: int = MAX_TEXT) -> list[Passage]:
    """Return the parts of a text to show: all of it, or those around the words with the largest shares.

    >>> passages("a short text", [])
    [(0, 12)]
    """
    if len(text) <= longest:
        return [(0, len(text))]
    chosen: list[Passage] = []
    for word in sorted(marked, key=lambda word: -abs(word.share)):
        window = (_word_start(text, word.start - AROUND), _word_stop(text, word.end + AROUND))
        joined = _joined([*chosen, window])
        if sum(stop - start for start, stop in joined) > longest:
            break
        chosen = joined
    return chosen or [(0, _word_stop(text, longest))]


def _joined(windows: list[Passage]) -> list[Passage]:
    """Return the windows in order, those that touch as one."""
    joined: list[Passage] = []
    for start, stop in sorted(windows):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def _word_start(text: str, at: int) -> int:
    at = max(at, 0)
    while at > 0 and not text[at - 1].isspace():
        at -= 1
    return at


def _word_stop(text: str, at: int) -> int:
    at = min(at, len(text))
    while at < len(text) and not text[at].isspace():
        at += 1
    return at


def marked_text(text: str, explanation: Explanation, in_color: bool) -> Text:
    """Return the text, or passages of it, with the words that count most in color, or else in brackets."""
    marked, out, shown = explanation.marked(), Text(), passages(text, explanation.marked())
    for number, (start, stop) in enumerate(shown):
        out.append(GAP if number or start else "")
        at = start
        for word in marked:
            if word.start < at or word.end > stop:
                continue
            out.append(_plain(text[at : word.start]))
            name, is_for = _plain(word.text), word.share > 0
            if in_color:
                out.append(name, FOR if is_for else AGAINST)
            else:
                out.append(f"[{name}]" if is_for else f"[-{name}]")
            at = word.end
        out.append(_plain(text[at:stop]))
    out.append(GAP if shown[-1][1] < len(text) else "")
    return out


def _plain(text: str) -> str:
    return printable(" ".join(text.split("\n")))


def explanation_report(text: str | None, explanation: Explanation, in_color: bool) -> RenderableType:
    """Show why a text has a label, for a terminal."""
    synonym = "" if explanation.synonym is None else f" ({printable(explanation.synonym)})"
    head = Text.assemble((printable(explanation.label), "bold"), f"{synonym}  {explanation.summary}")
    parts: list[RenderableType] = [head]
    if explanation.description is not None:
        parts.append(Text(printable(explanation.description), "dim"))
    if text is not None:
        parts += [Text(), marked_text(text, explanation, in_color), Text()]
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, line in _lines(explanation):
        table.add_row(name, line)
    return Group(*parts, table, Text())


def _lines(explanation: Explanation) -> list[tuple[str, RenderableType]]:
    speak_for, against = explanation.for_and_against()
    features = (f"{each.column} {each.share:+.2f}" for each in explanation.features[:8])
    values = (f"{printable(each.name)} {each.share:+.2f}" for each in explanation.values)
    named = (f"{printable(text)!r} ({kind})" for text, kind in explanation.named_by)
    steps = (f"{printable(node.name)} ({node.probability:.2f})" for node in explanation.path)
    known: dict[str, RenderableType | None] = {
        "for": _words(speak_for),
        "against": _words(against),
        "features": Text("  ".join(features)),
        "beside": Text("  ".join(values)),
        "named by": Text(", ".join(named)),
        "members": _members(explanation) if explanation.members else None,
        "path": Text(" > ".join(steps)),
    }
    lines = [(name, line) for name, line in known.items() if line]
    for number, neighbor in enumerate(explanation.neighbors):
        shared = f": {', '.join(map(printable, neighbor.words))}" if neighbor.words else ""
        line = f"{printable(neighbor.id)} (similarity {neighbor.similarity:.2f}{shared})"
        if neighbor.text:
            start = _plain(neighbor.text[:120])
            line += f"\n{start}{GAP.rstrip() if len(neighbor.text) > len(start) else ''}"
        lines.append(("" if number else "like", Text(line)))
    return [*lines, ("remainder", Text(f"{explanation.remainder:+.2f}, not of single words"))]


def _words(words: Sequence[WordShare]) -> Text:
    return Text("  ".join(f"{printable(word.text.lower())} {word.share:+.2f}" for word in words))


def _members(explanation: Explanation) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    members = explanation.ranked_members
    largest = max(abs(members[0].share), 1e-9)
    for member in members:
        bar = "█" * round(BAR * abs(member.share) / largest) or "▏"
        style = "green" if member.share > 0 else "red"
        table.add_row(escape(member.name), Text(bar, style), f"{member.share:+.2f}", member.described)
    return table
