"""Evidence: on what grounds a field of an assembled value stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.answers import Answers, ObjectReading, Reading, ReadTrace, SpanReading
from planner.decision import NO, YES
from planner.reads import Item
from planner.schemas.forms import Picked
from planner.schemas.wording import names_of

DECIMALS = 6

Evidence = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Traces:
    """The reads of a decision, by the question they were for."""

    by_question: Mapping[str, Sequence[ReadTrace]]

    @staticmethod
    def of(answers: Answers) -> Traces:
        """The reads of these answers."""
        found: dict[str, list[ReadTrace]] = {}
        for trace in answers.reads:
            for id in trace.questions:
                found.setdefault(id, []).append(trace)
        return Traces(found)

    def served(self, id: str, tokens: int) -> Evidence:
        """What it took: attempts, tokens that the model wrote, and the engine and model of the last read."""
        traces = self.by_question.get(id, ())
        last = traces[-1].served if traces else None
        return {
            "attempts": 1 + max((trace.attempt for trace in traces), default=0),
            "tokens": tokens,
            "engine": last.engine if last else "",
            "model": last.model if last else "",
        }


def rounded(probability: float) -> float:
    """A figure as it is told."""
    return round(probability, DECIMALS)


def noul_evidence(id: str, reading: Reading, traces: Traces) -> Evidence:
    """Of one yes or no."""
    return {
        "kind": "read",
        "type": "noul",
        "question": id,
        "probabilities": dict(zip((YES, NO), map(rounded, reading.probabilities), strict=True)),
        "confidence": rounded(max(reading.probabilities)),
    } | traces.served(id, reading.draws)


def picked_evidence(node: Picked, reading: Reading, traces: Traces) -> Evidence:
    """Of one value among several; of a score the expectation too, in the field's own numbers."""
    if node.type == "noul":
        return noul_evidence(node.question, reading, traces)
    names = [str(value) for value in node.values] if node.type == "score" else names_of(node.values)
    found: Evidence = {
        "kind": "read",
        "type": node.type,
        "question": node.question,
        "probabilities": dict(zip(names, map(rounded, reading.probabilities), strict=True)),
        "confidence": rounded(max(reading.probabilities)),
    }
    if node.type == "score":
        weighted = (value * p for value, p in zip(node.values, reading.probabilities, strict=True))
        found["expectation"] = rounded(sum(weighted))
    return found | traces.served(node.question, reading.draws)


def flags_evidence(
    questions: Mapping[str, str], readings: Mapping[str, Reading], taken: Collection[str], traces: Traces
) -> Evidence:
    """Of a list of listed values: how likely each is in it. `questions` and `readings` go by the values'
    names, `taken` are those of the values given.

    `confidence` is that of the weakest of what was given, and `mended` where the bounds of the list asked
    for another list than the likeliest.
    """
    served = [traces.served(questions[name], reading.draws) for name, reading in readings.items()]
    found: Evidence = {
        "kind": "read",
        "type": "noul",
        "questions": dict(questions),
        "probabilities": {name: rounded(reading.probabilities[0]) for name, reading in readings.items()},
        "confidence": rounded(
            min(reading.probabilities[0 if name in taken else 1] for name, reading in readings.items())
        ),
    }
    if any((reading.best == 0) != (name in taken) for name, reading in readings.items()):
        found["mended"] = True
    return found | {**served[-1], "tokens": sum(one["tokens"] for one in served)}


def span_evidence(id: str, reading: SpanReading, traces: Traces, *, many: bool) -> Evidence:
    """Of pieces of the text: where they are, and how sure the weakest is."""
    found: Evidence = {
        "kind": "span",
        "type": "spans" if many else "span",
        "question": id,
        "found": bool(reading.items),
    }
    if reading.items:
        found["confidence"] = rounded(min(item.confidence for item in reading.items))
    if many:
        found["items"] = [_item(item) for item in reading.items]
    elif reading.items:
        found |= _item(reading.items[0])
    return found | traces.served(id, reading.tokens)


def _item(item: Item) -> Evidence:
    return {"start": item.start, "end": item.end, "confidence": rounded(item.confidence)}


def written_evidence(id: str, reading: ObjectReading, traces: Traces) -> Evidence:
    """Of what the model wrote."""
    return (
        {"kind": "generated", "type": "object", "question": id, "valid": reading.valid}
        | traces.served(id, reading.tokens)
        | {"attempts": reading.attempts, "finish_reason": reading.finish}
    )
