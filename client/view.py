"""A decision as rich renderables: its answers, its text, its plan. Pure: a response body in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rich import box
from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from client.cells import as_text, cell, clip, number, percent
from client.marks import span_answers
from client.plan_view import plan_view
from client.span_view import span_detail, span_said, text_view

OPTIONS_SHOWN = 8
_BAR_COLUMNS = 16
_LABEL_COLUMNS = 28


class _Part(NamedTuple):
    """One alternative of an answer: its name as shown, its probability, whether it leads."""

    label: str
    probability: float
    leads: bool


def decision_view(body: Mapping[str, Any], state: Any = None) -> RenderableType:
    """Answers; the text with what was found in it; the plan that ran where the body has diagnostics."""
    shown: list[RenderableType] = [answers_view(body)]
    answers = body.get("answers") or {}
    if state is not None and span_answers(answers):
        shown.append(text_view(state, answers))
    diagnostics = body.get("diagnostics")
    if isinstance(diagnostics, Mapping):
        shown.append(plan_view(diagnostics))
    return Group(*shown)


def answers_view(body: Mapping[str, Any]) -> Table:
    """A table with a row per question: answer, bars or places, confidence, label mass."""
    skipped = (body.get("diagnostics") or {}).get("skipped") or {}
    answers = body.get("answers") or {}
    spans = span_answers(answers)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column("question", style="bold")
    table.add_column("answer")
    table.add_column("probabilities, places" if spans else "probabilities")
    table.add_column("confidence", justify="right")
    table.add_column("label mass", justify="right")
    for id, answer in answers.items():
        if answer is None:
            reason = cell(str(skipped.get(id, "not asked")), "dim")
            table.add_row(cell(id), Text("skipped", style="dim"), reason, "", "")
            continue
        table.add_row(
            cell(id),
            span_said(answer) if id in spans else _answer(answer),
            span_detail(answer) if id in spans else _bars(answer),
            number(answer.get("confidence")),
            number(_field(answer, "label_mass")),
        )
    return table


def parts(answer: Mapping[str, Any]) -> list[_Part]:
    """The alternatives of a label answer: yes alone, options by falling probability, levels in order."""
    kind = answer.get("type")
    if kind == "noul":
        return [_Part("p(yes)", float(answer["noul"]), True)]
    probabilities: Mapping[str, float] = answer.get("probabilities") or {}
    top = max(probabilities.values(), default=0.0)
    if kind == "score":
        legend = answer.get("legend") or {}
        return [_Part(f"{level} {as_text(legend.get(level, ''))}".strip(), p, p == top)
                for level, p in probabilities.items()]  # fmt: skip
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])
    return [_Part(name, p, p == top) for name, p in ranked]


def label_said(answer: Mapping[str, Any]) -> str:
    """What a label or object question was answered with, in a few words."""
    kind = answer.get("type")
    if kind == "noul":
        return "yes" if float(answer["noul"]) >= 0.5 else "no"
    if kind == "choice":
        return str(answer.get("choice"))
    if kind == "score":
        return f"{float(answer['score']):.2f} of {max(len(answer.get('probabilities') or {}) - 1, 0)}"
    if kind == "object" and answer.get("valid"):
        return as_text(answer.get("value"))
    if kind == "object":
        fault = answer.get("error") or {}
        return f"not valid: {fault.get('path', '')} {fault.get('message', '')}"
    return as_text(answer)


def _answer(answer: Mapping[str, Any]) -> Text:
    shown = cell(label_said(answer), "bold green")
    draws = _field(answer, "draws")
    if draws:
        agreement, stderr = _field(answer, "agreement"), _field(answer, "stderr")
        shown.append(f"\n{draws} draws", style="not bold dim")
        if agreement is not None:
            shown.append(f"\n{100 * agreement:.0f} % agree", style="not bold dim")
        if stderr is not None:
            shown.append(f"\n± {stderr:.3f}", style="not bold dim")
    return shown


def _bars(answer: Mapping[str, Any]) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(width=_BAR_COLUMNS)
    grid.add_column(justify="right")
    shown = parts(answer)
    limit = OPTIONS_SHOWN if answer.get("type") == "choice" else len(shown)
    for part in shown[:limit]:
        color = "green" if part.leads else "bright_black"
        label = cell(clip(part.label, _LABEL_COLUMNS), style="" if part.leads else "dim")
        grid.add_row(label, Bar(1.0, 0.0, part.probability, width=_BAR_COLUMNS, color=color),
                     percent(part.probability))  # fmt: skip
    rest = shown[limit:]
    if rest:
        grid.add_row(Text(f"and {len(rest)} more", style="dim"), "",
                     percent(sum(part.probability for part in rest)))  # fmt: skip
    return grid


def _field(answer: Mapping[str, Any], name: str) -> Any:
    """A field of Canvass's own, under its plain name or under `x_`."""
    return answer.get(name, answer.get(f"x_{name}"))
