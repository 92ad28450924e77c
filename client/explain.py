"""`canvass explain`: the plan that a Pydantic model becomes, as the server compiles it. Nothing runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from client.cells import as_text, cell, clip, count
from client.errors import BadModelName, CannotRead, ServerUnreachable
from client.http import DEFAULT_URL
from client.jobs import AsJson, Key, console, print_json

if TYPE_CHECKING:
    from pydantic import BaseModel

_TRIES = 2
_INSTRUCTIONS = 60
"""Characters of a question that are shown."""

_NAMED = 3
"""How many of the questions that one sees are named."""

_KINDS = {"span": "span", "spans": "span", "object": "generated"}
_STYLES = {"read": "green", "span": "cyan", "generated": "yellow", "fixed": "dim", "skipped": "dim"}


def explain(
    model: Annotated[
        str, typer.Argument(metavar="MODULE:MODEL", help="A Pydantic model, as it is imported here.")
    ],
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="A state to count the reads for: JSON, or text."
        ),
    ] = None,
    url: Annotated[str, typer.Option(envvar="CANVASS_URL", help="Base URL of a Canvass API.")] = DEFAULT_URL,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Show what a model compiles to: how each field is answered, after which others, in how many reads."""
    # The SDK is loaded here, so that the other commands start without it.
    from client.sdk import Canvass, Unreachable

    found = model_named(model)
    given = None if state is None else read_state(state)
    try:
        with Canvass(url, api_key=key, retries=_TRIES) as canvass:
            plan = canvass.compile(found, state=given)
    except Unreachable as error:
        # It names what the SDK takes; the command takes an option.
        raise ServerUnreachable(error.url, error.reason) from error
    if json:
        return print_json(plan)
    return console().print(explained_view(found.__name__, plan))


def model_named(name: str) -> type[BaseModel]:
    """The model that `module:Model` names; the working directory is looked into first. Raises `BadModelName`,
    and whatever the module raises when it is imported.
    """
    from pydantic import BaseModel

    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise BadModelName(f"{name!r} names no model. {BadModelName.__doc__}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that lacks another one says so itself.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise BadModelName(f"There is no module {error.name!r} here. {BadModelName.__doc__}") from error
    for part in path.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise BadModelName(f"{path!r} in {module_name} is no Pydantic model. {BadModelName.__doc__}")
    return found


def read_state(file: Path) -> Any:
    """The state in a file: JSON where its name ends in .json, else text. Raises `CannotRead`."""
    try:
        content = file.read_bytes()
        return orjson.loads(content) if file.suffix == ".json" else content.decode()
    except OSError as error:
        raise CannotRead(f"Cannot read {file}: {error.strerror}.") from error
    except ValueError as error:
        raise CannotRead(f"{file} is no {'JSON' if file.suffix == '.json' else 'UTF-8'}: {error}.") from error


def explained_view(name: str, plan: Mapping[str, Any]) -> RenderableType:
    """A line of counts, and a row per field. Pure: a model's name and the body of `/v1/compile` in."""
    reads = plan["reads"]
    counts = [
        count(len(plan["fields"] or {}), "field"),
        count(len(plan["questions"]), "question"),
        count(len(plan["stages"]), "stage"),
        count(reads["all"], "read")
        if reads["least"] == reads["all"]
        else f"{reads['least']:,} to {reads['all']:,} reads",
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for column in ("field", "kind", "question", "after", "only if"):
        table.add_column(column, overflow="fold")
    for column in ("stage", "reads"):
        table.add_column(column, justify="right")
    for row in _rows(plan):
        table.add_row(*row)
    return Group(Text(f"{name}: {', '.join(counts)}", style="bold"), table)


def _rows(plan: Mapping[str, Any]) -> Iterator[tuple[Text | str, ...]]:
    """The rows of the fields in their order, then those of questions that no field names."""
    left = dict.fromkeys(plan["questions"])
    for pointer, told in (plan["fields"] or {}).items():
        asked = [*(told.get("questions") or {}).values(), *([told["question"]] if "question" in told else [])]
        if present := told.get("present"):
            yield _row(plan, f"{pointer} (is there one?)", "read", "noul", [present])
        yield _row(plan, pointer or "(the value)", told["kind"], told.get("type", ""), asked)
        for id in (*asked, present):
            left.pop(id, None)
    for id in left:
        type = plan["questions"][id]["type"]
        yield _row(plan, id, _KINDS.get(type, "read"), type, [id])


def _row(
    plan: Mapping[str, Any], field: str, kind: str, type: str, asked: Sequence[str]
) -> tuple[Text | str, ...]:
    questions = [plan["questions"][id] for id in asked]
    first = questions[0] if questions else {}
    stages = [number for number, ids in enumerate(plan["stages"]) for id in asked if id in ids]
    told = f"{kind}, {len(asked)} {type}s" if len(asked) > 1 else f"{kind}, {type}" if type else kind
    wanted = ", ".join(f"{id}: {' or '.join(answers)}" for id, answers in first.get("ask_if", {}).items())
    reads = sum(plan["reads"]["by_question"].get(id, 0) for id in asked)
    return (
        cell(field),
        cell(told, _STYLES.get(kind, "")),
        cell(clip(as_text(first.get("instructions", "")), _INSTRUCTIONS)),
        cell(_after(plan, asked, first.get("depends_on", ()))),
        cell(wanted),
        "" if not stages else str(min(stages)) if len(set(stages)) == 1 else f"{min(stages)}-{max(stages)}",
        str(reads) if asked else "",
    )


def _after(plan: Mapping[str, Any], asked: Sequence[str], needed: Sequence[str]) -> str:
    """What a question sees of those before it, short where that is all of them."""
    if not asked:
        return ""
    names = list(plan["questions"])
    before = names[: names.index(asked[0])]
    if not needed:
        return "alone" if before else "-"
    if len(needed) <= _NAMED:
        return ", ".join(needed)
    return (
        f"all {len(before)} before"
        if len(needed) == len(before)
        else f"{len(needed)} of {len(before)} before"
    )
