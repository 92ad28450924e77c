"""Structured chat: typed questions in a chat completion, answered as JSON in its message."""

from __future__ import annotations

import json
from typing import Any

from planner.answers import Answers, Reading, expectation
from planner.decision import Decision, Question
from planner.dialects.chat_request import (
    ChatQuestion,
    ChatSchema,
    ChatSpan,
    ChatSpans,
    decision_fields,
    level_words,
    may_show_images,
    state_of,
)
from planner.dialects.decisions import salt_of
from planner.dialects.diagnostics import diagnostics
from planner.dialects.dialect import Timing
from planner.dialects.image_fields import NOTHING, Place, Sent, Shown, sent_in, with_parts
from planner.dialects.span_answers import span_answer
from planner.dialects.systemone import DECIMALS, answer_words, extras_of, options_of
from planner.dialects.systemone_request import text_of
from planner.errors import Invalid


def images_in(body: Any) -> Sent:
    """The images in the state's parts, in their order. Raises as `parse` does."""
    return sent_in(lambda place: _decision(body, place)) if may_show_images(body) else Sent()


def parse(body: Any, shown: Shown = NOTHING) -> Decision:
    """The decision of a decoded body and its images. Raises pydantic's ValidationError, or Invalid."""
    return with_parts(lambda place: _decision(body, place), shown)


def _decision(body: Any, place: Place) -> Decision:
    fields = decision_fields(body)
    model, key = body.get("model"), body.get("prompt_cache_key")
    if not isinstance(model, str):
        raise Invalid(("model",), "a decision names its model", kind="missing", given=model)
    schema = ChatSchema.model_validate(fields)
    known = {question.id: question for question in schema.questions}
    return Decision(
        model=model,
        state=state_of(body, place),
        questions=tuple(_question(question, known) for question in schema.questions),
        options=options_of(schema),
        door="chat",
        extended=True,
        salt=salt_of(key if isinstance(key, str) else None),
    )


def _question(question: ChatQuestion, known: dict[str, ChatQuestion]) -> Question:
    return Question(
        id=question.id,
        type=question.type,
        instructions=text_of(question.instructions),
        alternatives=() if isinstance(question, ChatSpan | ChatSpans) else question.alternatives(),
        depends_on=question.depends_on,
        ask_if={
            needed: level_words(known.get(needed), answer_words(values))
            for needed, values in question.ask_if.items()
        },
        alone=question.alone,
        max_tokens=question.max_tokens if isinstance(question, ChatSpan | ChatSpans) else None,
        max_items=question.max_items if isinstance(question, ChatSpans) else 1,
    )


def render(decision: Decision, answers: Answers, timing: Timing) -> dict[str, Any]:
    """The chat completion, its content the JSON `{"answers", "diagnostics"}`."""
    content: dict[str, Any] = {
        "answers": {
            question.id: span_answer(decision, question, answers.spans[question.id])
            if question.id in answers.spans
            else _answer(question, answers.readings.get(question.id))
            for question in decision.questions
            if question.id in answers.settled
        }
    }
    if decision.options.diagnostics:
        content["diagnostics"] = diagnostics(decision, answers, timing)
    text = json.dumps(content, ensure_ascii=False)
    return {
        "id": f"chatcmpl-{timing.id}",
        "object": "chat.completion",
        "created": int(timing.created),
        "model": answers.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": answers.input_tokens,
            "completion_tokens": answers.output_tokens,
            "total_tokens": answers.input_tokens + answers.output_tokens,
            "prompt_tokens_details": {"cached_tokens": answers.cached_tokens},
            "completion_tokens_details": {
                "reasoning_tokens": answers.thought.tokens if answers.thought else 0
            },
        },
    }


def _answer(question: Question, reading: Reading | None) -> dict[str, Any] | None:
    if reading is None:
        return None
    names = [
        alternative.source if question.type == "score" else alternative.name
        for alternative in question.alternatives
    ]
    best, rounded = reading.best, [round(p, DECIMALS) for p in reading.probabilities]
    answer: dict[str, Any] = {
        "type": question.type,
        "label": names[best],
        "confidence": rounded[best],
        "probabilities": dict(zip(names, rounded, strict=True)),
    }
    match question.type:
        case "noul":
            answer["noul"] = rounded[0]
        case "choice":
            answer["choice"] = names[best]
        case _:
            score = round(expectation(reading.probabilities), DECIMALS)
            answer |= {"score": score, "level": best}
    return answer | extras_of(reading)
