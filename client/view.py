"""A decision's answers and its plan as rich renderables. Pure: response body in, renderables out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from rich import box
from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

OPTIONS_SHOWN = 8
READS_SHOWN = 12
_BAR_COLUMNS = 16
_LABEL_COLUMNS = 28
_SHORT = 160
_READ_COLUMNS = ["wave", "stage", "questions", "draw", "seed", "engine", "ms", "prompt", "cached", "attempts"]


class _Part(NamedTuple):
    """One alternative of an answer: its name as shown, its probability, whether it leads."""

    label: str
    probability: float
    leads: bool


def decision_view(body: Mapping[str, Any]) -> RenderableType:
    """Answers, then the plan that ran where the body has diagnostics."""
    diagnostics = body.get("diagnostics")
    if not isinstance(diagnostics, Mapping):
        return answers_view(body)
    return Group(answers_view(body), plan_view(diagnostics))


def answers_view(body: Mapping[str, Any]) -> Table:
    """A table with a row per question: answer, probabilities as bars, confidence, label mass."""
    skipped = (body.get("diagnostics") or {}).get("skipped") or {}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column("question", style="bold")
    table.add_column("answer")
    table.add_column("probabilities")
    table.add_column("confidence", justify="right")
    table.add_column("label mass", justify="right")
    for id, answer in (body.get("answers") or {}).items():
        if answer is None:
            reason = _cell(str(skipped.get(id, "not asked")), "dim")
            table.add_row(_cell(id), Text("skipped", style="dim"), reason, "", "")
            continue
        table.add_row(
            _cell(id),
            _answer(answer),
            _bars(answer),
            _number(answer.get("confidence")),
            _number(_field(answer, "label_mass")),
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
        return [_Part(f"{level} {_text(legend.get(level, ''))}".strip(), p, p == top)
                for level, p in probabilities.items()]  # fmt: skip
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])
    return [_Part(name, p, p == top) for name, p in ranked]


def plan_view(diagnostics: Mapping[str, Any]) -> RenderableType:
    """The plan that ran: one line of counts, the stages when there are several, a row per read."""
    lines: list[RenderableType] = [Text(plan_summary(diagnostics), style="bold")]
    stages = diagnostics.get("stages") or []
    if len(stages) > 1:
        lines += [Text.assemble(f"  stage {number}: ", _ids(ids)) for number, ids in enumerate(stages)]
    reads = diagnostics.get("reads") or []
    lines.append(_reads_table(reads[:READS_SHOWN]))
    if len(reads) > READS_SHOWN:
        lines.append(Text(f"  and {len(reads) - READS_SHOWN} more reads", style="dim"))
    return Group(*lines)


def plan_summary(diagnostics: Mapping[str, Any]) -> str:
    """Stages, waves, reads, draws, engines and milliseconds of a decision, in one line."""
    reads = diagnostics.get("reads") or []
    draws = [int(one.get("draws", 1)) for one in (diagnostics.get("questions") or {}).values()]
    least, most = min(draws, default=0), max(draws, default=0)
    engines = dict.fromkeys(read.get("engine", "") for read in reads)
    timing = diagnostics.get("timing") or {}
    counts = [
        _count(len(diagnostics.get("stages") or []), "stage"),
        _count(int(diagnostics.get("waves", 0)), "wave"),
        _count(len(reads), "read"),
        _count(most, "draw") if least == most else f"{least} to {most} draws",
        _count(len(engines), "engine"),
        f"{timing.get('total_ms', 0.0):.1f} ms ({timing.get('queued_ms', 0.0):.1f} ms queued)",
    ]
    return "Plan: " + ", ".join(counts)


def short_state(state: Any) -> str:
    """The beginning of a state on one line."""
    return _clip(" ".join(_text(state).split()), _SHORT)


def printable(text: str) -> str:
    """The text with control characters escaped: what a server sends must not steer the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _answer(answer: Mapping[str, Any]) -> Text:
    kind = answer.get("type")
    if kind == "noul":
        said = "yes" if float(answer["noul"]) >= 0.5 else "no"
    elif kind == "choice":
        said = str(answer.get("choice"))
    elif kind == "score":
        said = f"{float(answer['score']):.2f} of {max(len(answer.get('probabilities') or {}) - 1, 0)}"
    else:
        said = _text(answer)
    shown = _cell(said, "bold green")
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
        label = _cell(_clip(part.label, _LABEL_COLUMNS), style="" if part.leads else "dim")
        grid.add_row(label, Bar(1.0, 0.0, part.probability, width=_BAR_COLUMNS, color=color),
                     _percent(part.probability))  # fmt: skip
    rest = shown[limit:]
    if rest:
        grid.add_row(Text(f"and {len(rest)} more", style="dim"), "",
                     _percent(sum(part.probability for part in rest)))  # fmt: skip
    return grid


def _reads_table(reads: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for name in _READ_COLUMNS:
        table.add_column(name, justify="left" if name in ("questions", "engine") else "right")
    for read in reads:
        table.add_row(
            str(read.get("wave", "")),
            str(read.get("stage", "")),
            _ids(read.get("questions") or []),
            str(read.get("draw", "")),
            str(read.get("seed", "")),
            _cell(str(read.get("engine", ""))),
            f"{float(read.get('ms', 0)):.1f}",
            str(read.get("prompt_tokens", "")),
            str(read.get("cached_tokens", "")),
            str(read.get("attempts", "")),
        )
    return table


def _ids(ids: Iterable[Any]) -> Text:
    return _cell(_clip(", ".join(str(id) for id in ids), _SHORT))


def _cell(text: str, style: str = "") -> Text:
    # Text, because a string in a table would be read as rich's markup.
    return Text(printable(text), style=style)


def _field(answer: Mapping[str, Any], name: str) -> Any:
    """A field of Canvass's own, under its plain name or under `x_`."""
    return answer.get(name, answer.get(f"x_{name}"))


def _number(value: Any) -> str:
    return "" if value is None else f"{float(value):.3f}"


def _percent(probability: float) -> str:
    return "< 0.1 %" if 0 < probability < 0.001 else f"{100 * probability:.1f} %"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _clip(text: str, columns: int) -> str:
    return text if len(text) <= columns else text[: columns - 1] + "…"
