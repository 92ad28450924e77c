"""Assembly: the answers to a form's questions become a value of its schema, with the evidence of each
field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from planner.answers import Answers, Reading
from planner.schemas.evidence import (
    Evidence,
    Traces,
    flags_evidence,
    noul_evidence,
    picked_evidence,
    span_evidence,
    written_evidence,
)
from planner.schemas.forms import (
    Fixed,
    Flags,
    Form,
    Grounded,
    Loop,
    Maybe,
    Node,
    Picked,
    Record,
    Tagged,
    Written,
    nodes_of,
)
from planner.schemas.values import validate


@dataclass(frozen=True, slots=True)
class FieldError:
    """Why a value could not be assembled: at which field (a JSON pointer), a stable code, and one sentence.

    Codes: `not_found` (a piece of the text), `invalid_object` (what the model wrote), `invalid` (the whole,
    against the schema), `not_asked`.
    """

    path: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Assembled:
    """A value of a schema, or None with errors; `fields` is the evidence by JSON pointer."""

    value: Any
    errors: tuple[FieldError, ...]
    fields: dict[str, Evidence]

    @property
    def valid(self) -> bool:
        """Whether the value is there: None may be a valid one."""
        return not self.errors


def assemble(form: Form, answers: Answers, source: str) -> Assembled:
    """The value that the answers to a form's questions make; `source` is the text that spans are offsets
    of.
    """
    assembly = _Assembly(answers, source, Traces.of(answers))
    value = assembly.value(form.root)
    errors = assembly.errors
    if not errors:
        faults = validate(value, form.schema)
        errors = [FieldError(fault.path, "invalid", fault.message) for fault in faults]
    return Assembled(None if errors else value, tuple(errors), assembly.fields)


@dataclass(slots=True)
class _Assembly:
    """A walk through a form. The evidence of a field is noted when it is reached; a part's goes before."""

    answers: Answers
    source: str
    traces: Traces
    errors: list[FieldError] = field(default_factory=list)
    fields: dict[str, Evidence] = field(default_factory=dict)

    def value(self, node: Node) -> Any:
        """A node's value; None where it has an error."""
        return _ASSEMBLED[type(node)](self, node)

    def fixed(self, node: Fixed) -> Any:
        """The one value there is."""
        self.fields[node.path] = {"kind": "fixed"}
        return node.value

    def picked(self, node: Picked) -> Any:
        """The likeliest value."""
        reading = self._reading(node.path, node.question)
        if reading is None:
            return None
        self.fields[node.path] = picked_evidence(node, reading, self.traces)
        return node.values[reading.best]

    def flags(self, node: Flags) -> Any:
        """The values that were said to be in it, mended to the bounds by the likeliest and least likely."""
        readings = [self._reading(node.path, id) for id in node.questions]
        known = [reading for reading in readings if reading is not None]
        if len(known) < len(readings):
            return None
        by_name = dict(zip(node.names, known, strict=True))
        questions = dict(zip(node.names, node.questions, strict=True))
        said = sum(reading.best == 0 for reading in known)
        likeliest = sorted(range(len(known)), key=lambda place: -known[place].probabilities[0])
        taken = set(likeliest[: min(max(said, node.least), node.most)])
        names = {node.names[place] for place in taken}
        self.fields[node.path] = flags_evidence(questions, by_name, names, self.traces)
        return [value for place, value in enumerate(node.values) if place in taken]

    def grounded(self, node: Grounded) -> Any:
        """Pieces of the text, with their offsets."""
        reading = self.answers.spans.get(node.question)
        if reading is None:
            self._not_asked(node.path, node.question)
            return None
        self.fields[node.path] = span_evidence(node.question, reading, self.traces, many=node.many)
        found = [self._piece(item.start, item.end, node.bare) for item in reading.items]
        if not found and node.optional:
            return None
        if len(found) < (node.least if node.many else 1):
            told = f"{len(found)} of at least {node.least} pieces were" if node.many else "nothing was"
            self._fail(node.path, "not_found", f"{told} found in the text for this field")
            return None
        return found if node.many else found[0]

    def _piece(self, start: int, end: int, bare: bool) -> Any:
        text = self.source[start:end]
        return text if bare else {"text": text, "start": start, "end": end}

    def written(self, node: Written) -> Any:
        """What the model wrote."""
        reading = self.answers.objects.get(node.question)
        if reading is None:
            self._not_asked(node.path, node.question)
            return None
        self.fields[node.path] = written_evidence(node.question, reading, self.traces)
        if reading.fault is not None:
            self._fail(f"{node.path}{reading.fault.path}", "invalid_object", reading.fault.message)
        return reading.value

    def record(self, node: Record) -> Any:
        """An object of its fields."""
        return {name: self.value(child) for name, child in node.fields}

    def maybe(self, node: Maybe) -> Any:
        """The value, if there is one."""
        reading = self._reading(node.path, node.question)
        if reading is None:
            return None
        told = noul_evidence(node.question, reading, self.traces)
        if reading.best:
            self.fields[node.path] = told
            self._skip(node.node)
            return None
        value = self.value(node.node)
        inner = self.fields.get(node.path)
        shown = {"question": node.question, "probability": told["probabilities"]["yes"]}
        self.fields[node.path] = {**inner, "present": shown} if inner else told
        return value

    def tagged(self, node: Tagged) -> Any:
        """The branch that the tag picked."""
        reading = self._reading(node.tag.path, node.tag.question)
        if reading is None:
            return None
        branch = node.branches[reading.best]
        value = self.value(branch)
        for other in node.branches:
            if other is not branch:
                self._skip(other)
        return value

    def loop(self, node: Loop) -> Any:
        """As many items as there are."""
        count = len(node.items) if node.count is None else self.picked(node.count)
        if count is None:
            return None
        values = [self.value(item) for item in node.items[:count]]
        for item in node.items[count:]:
            self._skip(item)
        return values

    def _skip(self, node: Node) -> None:
        """Note the fields under a node that were not asked after all."""
        for one in nodes_of(node):
            ids = one.questions[:1] if isinstance(one, Flags) else (getattr(one, "question", None),)
            for id in ids:
                if id is not None and one.path not in self.fields:
                    reason = self.answers.skipped.get(id, "not needed")
                    self.fields[one.path] = {"kind": "skipped", "question": id, "reason": reason}

    def _reading(self, path: str, id: str) -> Reading | None:
        reading = self.answers.readings.get(id)
        if reading is None:
            self._not_asked(path, id)
        return reading

    def _not_asked(self, path: str, id: str) -> None:
        reason = self.answers.skipped.get(id, "it was not among those to ask")
        self.fields.setdefault(path, {"kind": "skipped", "question": id, "reason": reason})
        self._fail(path, "not_asked", f"the question {id!r} was not asked: {reason}")

    def _fail(self, path: str, code: str, message: str) -> None:
        self.errors.append(FieldError(path, code, message))


_ASSEMBLED: dict[type, Callable[[_Assembly, Any], Any]] = {
    Fixed: _Assembly.fixed,
    Picked: _Assembly.picked,
    Flags: _Assembly.flags,
    Grounded: _Assembly.grounded,
    Written: _Assembly.written,
    Record: _Assembly.record,
    Maybe: _Assembly.maybe,
    Tagged: _Assembly.tagged,
    Loop: _Assembly.loop,
}
