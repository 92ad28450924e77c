"""Prompts: what the model reads ahead of a canvas.

An isolated prompt puts the state first and its one question last, so that all questions of a
decision share the prompt up to the end of the state and an engine's prefix cache serves them all.
A joint prompt lists every question and then the state. Both are a `head` that other reads share
and a `tail` that is this read's own; the two are tokenised apart, so a shared head is shared to
the token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from planner.decision import IMAGE_MARK, Question, as_text
from planner.formats import ISOLATED, Format
from planner.reads import Message

_MARK = re.compile(f"{IMAGE_MARK}([0-9]{{1,4}}){IMAGE_MARK}")

Told = tuple[Question, str]
"""An earlier question, and its answer in the words that a later prompt restates it with."""

JOINT_OPENING = "Read the text below and answer every question about it with one label, as listed."


def isolated_head(state: str, context: str | None) -> str:
    """The shared part of every isolated prompt of a decision: the state, then the context."""
    return f"{state}\n\n{context}\n\n" if context else f"{state}\n\n"


def isolated_tail(question: Question, labels: Sequence[str], format: Format, earlier: Sequence[Told]) -> str:
    """The question with its options, after the answers it depends on, told by their instructions."""
    block = question_block(question, labels, format.head(0, ""))
    return f"{restated(earlier)}{block}\nAnswer with one label: {_label_list(labels)}"


def span_tail(question: Question, earlier: Sequence[Told] = ()) -> str:
    """A span question and how to answer it: in the text's own words, one piece or one per line."""
    if question.type == "span":
        told = "Answer with the exact words from the text, or none."
    else:
        told = "Answer with the exact words from the text, one answer per line, or none."
    return f"{restated(earlier)}{ISOLATED.head(0, '')}{question.instructions or ''}\n{told}"


def object_text(
    question: Question, earlier: Sequence[Told], thought: str, refused: tuple[str, str] | None
) -> str:
    """An object question with its whole schema, after the answers it depends on and the thought that went
    ahead. `refused` is the answer that was not valid, with what was wrong.
    """
    return "\n\n".join(
        part
        for part in (
            restated(earlier).rstrip(),
            f"Thoughts so far:\n{thought}" if thought else "",
            f"{ISOLATED.head(0, '')}{question.instructions or ''}".rstrip(),
            f"Answer with one JSON value that is valid against this JSON Schema:\n{as_text(question.schema)}",
            f"This answer was not valid:\n{refused[0]}\n{refused[1]}\nAnswer again." if refused else "",
        )
        if part
    )


def thought_tail(questions: Sequence[tuple[Question, Sequence[str]]], ask: str) -> str:
    """Every question that is going to be asked, and what a thought is to be about."""
    blocks = [
        f"{ISOLATED.head(0, '')}{question.instructions or ''}"
        if not question.is_label
        else question_block(question, labels, ISOLATED.head(0, ""))
        for question, labels in questions
    ]
    return "\n\n".join([*blocks, ask] if ask else blocks)


def message_of(text: str, images: Sequence[str]) -> Message:
    """A prompt's text in parts: what stands between its image marks, and the images' numbers.

    A mark of no image is text: without images a client may write such, and a model always.
    """
    parts: list[str | int] = []
    start = 0
    for found in _MARK.finditer(text):
        if (image := int(found[1])) < len(images):
            parts += [text[start : found.start()], image]
            start = found.end()
    parts.append(text[start:])
    return Message(tuple(part for part in parts if part != ""), tuple(images))


def joint_head(listed: Sequence[tuple[Question, Sequence[str], str]], state: str, context: str | None) -> str:
    """All questions, each with its labels and heading, then the state."""
    blocks = [question_block(question, labels, heading) for question, labels, heading in listed]
    opening = f"{context}\n\n{JOINT_OPENING}" if context else JOINT_OPENING
    return "\n\n".join((opening, *blocks, f"Text:\n{state}"))


def question_block(question: Question, labels: Sequence[str], heading: str) -> str:
    """One question as the model reads it: its heading and instructions, then a line per label.

    A choice's line names the option, since the label stands for it; elsewhere the label speaks for
    itself and only a description follows.
    """
    lines = [f"{heading}{question.instructions or ''}".rstrip()]
    for label, alternative in zip(labels, question.alternatives, strict=True):
        told = (alternative.name if question.type == "choice" else None, alternative.text)
        meaning = " - ".join(part for part in told if part)
        lines.append(f"{label}: {meaning}" if meaning else label)
    return "\n".join(lines)


def restated(earlier: Sequence[Told]) -> str:
    """Earlier answers under their questions' instructions; ids never reach an isolated prompt."""
    if not earlier:
        return ""
    lines = [f"- {question.instructions or 'Unnamed question'}: {answer}" for question, answer in earlier]
    return "\n".join(("Already answered:", *lines)) + "\n\n"


def _label_list(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= 10 else f"{labels[0]} to {labels[-1]}"
