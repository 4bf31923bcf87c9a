"""Explanations as one HTML page that works offline."""

from collections.abc import Sequence
from html import escape

from labelspace.explain import Explanation, Neighbor, WordShare
from labelspace.report.page import asset, html_page

FOR, AGAINST = "56, 153, 98", "200, 70, 60"  # red, green and blue of words for and against


def explanations_page(text: str | None, explanations: Sequence[Explanation], model: str) -> str:
    """Return the page of why a text has some labels."""
    parts = [f"<h1>{escape(f'Why these labels: {model}')}</h1>"]
    parts.append(
        "<p>Green words speak for a label and red ones against it, the more the deeper the color; at most an eighth of "
        "the words are marked. Numbers are shares of the log-odds: those of all words add up, with the remainder, to "
        "the difference from the baseline, where nothing speaks for the label.</p>"
    )
    parts += [_section(text, explanation) for explanation in explanations]
    return html_page(f"labelspace: why these labels ({model})", parts, asset("explanation.css"))


def _section(text: str | None, explanation: Explanation) -> str:
    synonym = "" if explanation.synonym is None else f" <span class='soft'>({escape(explanation.synonym)})</span>"
    head = f"<h2 class='label'>{escape(explanation.label)}{synonym}</h2><p>{explanation.summary}</p>"
    if explanation.description is not None:
        head += f"<p class='soft'>{escape(explanation.description)}</p>"
    marked = "" if text is None else f"<div class='text'>{_marked(text, explanation)}</div>"
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{body}</dd>" for name, body in _rows(explanation))
    return f"<section>{head}{marked}<dl class='why'>{rows}</dl></section>"


def _marked(text: str, explanation: Explanation) -> str:
    words, out, at = explanation.marked(), "", 0
    largest = max((abs(word.share) for word in words), default=1.0)
    for word in words:
        strength = 0.12 + 0.5 * abs(word.share) / largest
        color = FOR if word.share > 0 else AGAINST
        out += escape(text[at : word.start])
        style = f"background: rgba({color}, {strength:.2f})"
        out += f"<mark style='{style}' title='{word.share:+.3f}'>{escape(word.text)}</mark>"
        at = word.end
    return out + escape(text[at:])


def _rows(explanation: Explanation) -> list[tuple[str, str]]:
    speak_for, against = explanation.for_and_against(8)
    features = [WordShare(str(each.column), 0, 0, each.share) for each in explanation.features[:12]]
    values = [WordShare(each.name, 0, 0, each.share) for each in explanation.values]
    named = (f"“{escape(text)}” ({escape(kind)})" for text, kind in explanation.named_by)
    steps = (f"{escape(node.name)} <span class='soft'>({node.probability:.2f})</span>" for node in explanation.path)
    rows = {
        "for": _chips(speak_for),
        "against": _chips(against),
        "features": _chips(features),
        "beside": _chips(values),
        "named by": ", ".join(named),
        "members": _members(explanation) if explanation.members else "",
        "path": " › ".join(steps),
        "like": "".join(map(_neighbor, explanation.neighbors)),
        "remainder": f"{explanation.remainder:+.2f}, not of single words",
    }
    return [(name, row) for name, row in rows.items() if row]


def _chips(words: Sequence[WordShare]) -> str:
    return "".join(
        f"<span class='chip'>{escape(word.text.lower())} <span class='soft'>{word.share:+.2f}</span></span>"
        for word in words
    )


def _members(explanation: Explanation) -> str:
    members, rows = explanation.ranked_members, ""
    largest = max(abs(members[0].share), 1e-9)
    for member in members:
        width, color = 7 * abs(member.share) / largest, FOR if member.share > 0 else AGAINST
        rows += (
            f"<tr><td>{escape(member.name)}</td><td><span class='bar' style='width: {width:.1f}rem; "
            f"background: rgb({color})'></span>{member.share:+.2f}</td>"
            f"<td class='soft said'>{escape(member.described)}</td></tr>"
        )
    return f"<table class='members'>{rows}</table>"


def _neighbor(neighbor: Neighbor) -> str:
    shared = f": {escape(', '.join(neighbor.words))}" if neighbor.words else ""
    text = "" if neighbor.text is None else f"<div class='text'>{escape(neighbor.text[:600])}</div>"
    said = f"<span class='soft'>(similarity {neighbor.similarity:.2f}{shared})</span>"
    return f"<div>{escape(neighbor.id)} {said}{text}</div>"
