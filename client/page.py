"""A decision as a web page in one file: no scripts, nothing loaded, every string escaped."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from client.cells import count, number, percent, printable_lines
from client.errors import CannotWrite
from client.marks import Gap, Mark, Stretch, faults, items_of, marks_of, source_text, span_answers, stretches
from client.page_style import COLORS, STYLE
from client.plan_view import plan_summary
from client.span_view import effort
from client.view import label_said, parts

WHOLE = 20_000
"""Code points up to which a page shows a text whole."""

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Decision</title>
"""


def write_page(file: Path, body: Mapping[str, Any], state: Any) -> None:
    """Write the page of a decision. Raises `CannotWrite`."""
    try:
        file.write_text(decision_page(body, state), encoding="utf-8")
    except OSError as error:
        raise CannotWrite(f"Cannot write {file}: {error.strerror}.") from error


def decision_page(body: Mapping[str, Any], state: Any) -> str:
    """The page of a decision: its text with the pieces marked, a legend, and the label answers as bars."""
    answers = body.get("answers") or {}
    spans = span_answers(answers)
    diagnostics = body.get("diagnostics")
    parted = [
        f"{_HEAD}<style>{STYLE}</style>\n</head>\n<body>\n<h1>Decision</h1>",
        f'<p class="quiet">Model {_escaped(str(body.get("model", "")))}</p>',
        *(_labels(answers) if len(spans) < len(answers) else ()),
        *(_spans(spans, source_text(state)) if spans else ()),
        *([f'<p class="quiet">{_escaped(plan_summary(diagnostics))}</p>'] if diagnostics else []),
        "</body>\n</html>\n",
    ]
    return "\n".join(parted)


def _labels(answers: Mapping[str, Any]) -> Iterator[str]:
    """The label answers, each with a bar per alternative."""
    spans = span_answers(answers)
    yield "<h2>Answers</h2>\n<table>"
    yield "<tr><th>question</th><th>answer</th><th>probabilities</th></tr>"
    for id, answer in answers.items():
        if answer is None:
            yield f'<tr><td>{_inline(id)}</td><td class="quiet">skipped</td><td></td></tr>'
        elif id not in spans:
            bars = "".join(_bar(part.label, part.probability) for part in parts(answer))
            yield f"<tr><td>{_inline(id)}</td><td>{_inline(label_said(answer))}</td><td>{bars}</td></tr>"
    yield "</table>"


def _bar(label: str, probability: float) -> str:
    width = 100 * max(0.0, min(1.0, probability))
    return (
        f'<div class="row"><span>{_inline(label)}</span>'
        f'<div class="track"><div class="bar" style="width: {width:.2f}%"></div></div>'
        f'<span class="percent">{_escaped(percent(probability))}</span></div>'
    )


def _spans(spans: Mapping[str, Mapping[str, Any]], source: str) -> Iterator[str]:
    """The legend, then the text with the pieces marked."""
    yield "<h2>Found in the text</h2>\n<table>"
    yield "<tr><th>question</th><th>found</th><th>confidence</th><th>took</th></tr>"
    for color, (id, answer) in enumerate(spans.items()):
        items = items_of(answer)
        found = "<br>".join(_inline(str(item.get("text"))) for item in items)
        sure = "<br>".join(_escaped(number(item.get("confidence"))) for item in items)
        resolved = "".join(_bar(text, p) for text, p in (answer.get("resolved") or {}).items())
        yield (
            f'<tr><td><span class="swatch {_class(color)}"></span>{_inline(id)}</td>'
            f"<td>{found or '<span class=quiet>not found</span>'}</td><td>{sure}</td>"
            f'<td class="quiet">{_escaped(effort(answer))}{resolved}</td></tr>'
        )
    yield "</table>"
    yield from (f'<p class="wrong">Wrong offsets: {_inline(fault)}</p>' for fault in faults(source, spans))
    shown = list(stretches(source, marks_of(source, spans), WHOLE))
    left_out = sum(part.size for part in shown if isinstance(part, Gap))
    size = count(len(source), "character") + (f", {left_out:,} of them left out" if left_out else "")
    yield f'<p class="quiet">{size}</p>'
    text = "".join(_gap(part) if isinstance(part, Gap) else _stretch(part) for part in shown)
    yield f'<div class="text" dir="auto">{text}</div>'


def _gap(gap: Gap) -> str:
    return f'<span class="gap"> … ({count(gap.size, "character")} left out) … </span>'


def _stretch(part: Stretch) -> str:
    text = _escaped(part.text)
    if not part.marks:
        return text
    title = _escaped(", ".join(mark.tag for mark in part.marks))
    tags = "".join(
        f'<span class="tag {_class(mark.color)}" title="{_escaped(mark.tag)}">{_inline(mark.tag)}</span>'
        for mark in part.closes
    )
    return f'<mark {_paint(part.marks)} title="{title}">{text}</mark>{tags}'


def _paint(marks: Sequence[Mark]) -> str:
    """One mark's colour; of several marks a stripe each, the shortest one's at the top."""
    if len(marks) == 1:
        return f'class="{_class(marks[0].color)}"'
    share = 100 / len(marks)
    stripes = ", ".join(
        f"var(--{_class(mark.color)}) {place * share:.1f}% {(place + 1) * share:.1f}%"
        for place, mark in enumerate(marks)
    )
    return f'style="background: linear-gradient({stripes})"'


def _class(color: int) -> str:
    return f"c{color % COLORS}"


def _inline(text: str) -> str:
    """Text from elsewhere in an element of its own, so that its writing direction stays in it."""
    return f"<bdi>{_escaped(text)}</bdi>"


def _escaped(text: str) -> str:
    return html.escape(printable_lines(text))
