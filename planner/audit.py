"""The audit of a decision: every read and every text as it was asked for and as it came back.

A pure function of the plan and its results, so nothing is noted while reads run. Prompts and canvases are
told by their hashes, which anyone who has the same state, tokenizer and Canvass can make again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from planner.decision import Decision, as_text
from planner.parts import Part
from planner.plan import Plan
from planner.reads import AnyRead, Failure, Found, Generation, Read, Result, Results, Rows, Served, Written
from planner.waves import AnyPart, asked_for

DECIMALS = 6


def audit(plan: Plan, results: Results) -> list[dict[str, Any]]:
    """One object per read that has a result, in the plan's order."""
    return [
        _read_line(
            part, part.read(want, results), results[want.id], {"draw": want.draw, "attempt": want.attempt}
        )
        for part, want in asked_for(plan, results)
        if want.id in results
    ]


def heading(decision: Decision) -> dict[str, Any]:
    """What an audit says of the decision itself."""
    return {
        "type": "decision",
        "door": decision.door,
        "model": decision.model,
        "schema_version": decision.schema_version,
        "schema_sha256": None if decision.schema is None else _text_hash(as_text(decision.schema)),
        "state_sha256": _text_hash(decision.text),
        "questions": list(decision.by_id),
        "seed": decision.options.seed,
    }


def _read_line(part: AnyPart, read: AnyRead, result: Result, told: Mapping[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {
        "type": "read",
        "id": read.id,
        "kind": read.kind,
        "stage": part.stage,
        "questions": list(part.ids_asked),
        **told,
        "prompt_sha256": _prompt_hash(read),
        **_asked(read),
    }
    if isinstance(result, Failure):
        return line | {"error": {"code": result.code, "message": result.message}}
    return line | _served(result.served) | _said(part, read, result)


def _prompt_hash(read: AnyRead) -> str:
    """SHA-256 (hex) of the prompt's token ids, each as four bytes, the least first; of a message, of its text
    in UTF-8 with the images' hashes after it.
    """
    if read.message is not None:
        return _text_hash("".join((read.message.text, *read.message.images)))
    return _ids_hash((*read.head, *read.tail))


def _text_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _ids_hash(ids: Iterable[int]) -> str:
    words = array("I", ids)
    return sha256(words.tobytes()).hexdigest()


def _asked(read: AnyRead) -> dict[str, Any]:
    if isinstance(read, Generation):
        return {"max_tokens": read.most_tokens, "grammar": read.grammar or None}
    canvas = read.canvas
    return {
        "canvas": {
            "seed": read.seed,
            "sha256": _ids_hash(canvas.seeded(read.seed)),
            "width": canvas.width,
            "slots": list(canvas.free),
            "steps": read.steps,
        }
    }


def _served(served: Served) -> dict[str, Any]:
    return {
        "engine": served.engine,
        "model": served.model,
        "at": round(served.at, 3),
        "ms": round(served.ms, 3),
        "prompt_tokens": served.prompt_tokens,
        "tried": [{"engine": one.engine, "ms": round(one.ms, 3), "why": one.why} for one in served.tried],
    }


def _said(part: AnyPart, read: AnyRead, result: Rows | Found | Written) -> dict[str, Any]:
    """What came back: a label read's logprobs by question and alternative, a text, or pieces of the state."""
    if isinstance(result, Written):
        return {"text": result.text, "tokens": result.tokens, "finish_reason": result.finish}
    if isinstance(result, Found):
        items = [
            {"start": item.start, "end": item.end, "confidence": round(item.confidence, DECIMALS)}
            for item in result.items
        ]
        return {"items": items, "confidence": round(result.confidence, DECIMALS), "tokens": result.tokens}
    if isinstance(part, Part) and isinstance(read, Read):
        return {"logprobs": _by_alternative(part, read, result)}
    return {"logprobs": [list(row) for row in result.logprobs]}


def _by_alternative(part: Part, read: Read, rows: Rows) -> dict[str, dict[str, float]]:
    """Natural logs over the whole vocabulary. A read holds those of its own id set alone."""
    known = [dict(zip(read.ids, row, strict=True)) for row in rows.logprobs]
    return {
        question.id: {
            alternative.name: round(row[id], DECIMALS)
            for alternative, id in zip(question.alternatives, slot.label_ids, strict=True)
            if id in row
        }
        for question, slot, row in zip(part.chunk.questions, part.template.slots, known, strict=True)
    }
