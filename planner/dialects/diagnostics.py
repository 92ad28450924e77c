"""The `diagnostics` field, the same on every door: what ran, and how sure each reading is."""

from __future__ import annotations

from typing import Any

from planner.answers import Answers
from planner.decision import Decision
from planner.dialects.dialect import Timing


def diagnostics(decision: Decision, answers: Answers, timing: Timing) -> dict[str, Any]:
    """Stages, waves and reads as they ran; per question its entropy (nats), label mass and draws."""
    return {
        "stages": [list(stage) for stage in answers.stages],
        "spans": list(answers.spans),
        "objects": list(answers.objects),
        "waves": answers.waves,
        "skipped": dict(answers.skipped),
        "reads": [
            {
                "id": read.id,
                "kind": read.kind,
                "wave": read.wave,
                "stage": read.stage,
                "questions": list(read.questions),
                "draw": read.draw,
                "attempt": read.attempt,
                "seed": read.seed,
                "engine": read.served.engine,
                "ms": round(read.served.ms, 3),
                "attempts": 1 + len(read.served.tried),
                "tried": [
                    {"engine": tried.engine, "ms": round(tried.ms, 3), "why": tried.why}
                    for tried in read.served.tried
                ],
                "prompt_tokens": read.served.prompt_tokens,
                "cached_tokens": read.served.cached_tokens,
            }
            for read in answers.reads
        ],
        "questions": {
            id: {
                "entropy": round(reading.entropy, 6),
                "label_mass": round(reading.label_mass, 6),
                "argmax_is_label": reading.is_label,
                "draws": reading.draws,
                "agreement": round(reading.agreement, 6),
                "stderr": {
                    alternative.name: round(error, 6)
                    for alternative, error in zip(
                        decision.by_id[id].alternatives, reading.stderr, strict=True
                    )
                },
            }
            for id, reading in answers.readings.items()
        },
        "thought": answers.thought
        and {
            "text": answers.thought.text,
            "tokens": answers.thought.tokens,
            "closed": answers.thought.closed,
            "ms": round(answers.thought.served.ms, 3),
        },
        "timing": {
            "queued_ms": None if timing.queued_ms is None else round(timing.queued_ms, 3),
            "total_ms": round(timing.total_ms, 3),
        },
    }
