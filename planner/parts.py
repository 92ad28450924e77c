"""A part: a chunk whose turn has come, with the reads it takes and what they say.

Prompts are built only for reads that are missing: folding results that are there never tokenises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from planner.answers import Reading, entropy, fold
from planner.canvas import Canvas, make_canvas
from planner.decision import Question
from planner.formats import ISOLATED, Distribution, Template, distribution, labels_of
from planner.once import once
from planner.plan import Chunk, Plan, format_of, template_of, told_to
from planner.prompts import Told, isolated_tail, joint_head, message_of, restated
from planner.reads import Ids, Message, Read, Results, Rows, Wanted, Written, id_sets
from planner.vocabulary import Vocabulary, encode_long, encode_recurring


@dataclass(frozen=True, eq=False)
class Part:
    """The reads of one chunk: every draw, times every id set that its labels need.

    `lines` are the labels already written in a joint canvas's prompt: the settled questions, each with the
    index of its best alternative. `words` are the answers so far as prompts restate them, by question;
    `thought` is what the model wrote ahead of all answers.
    """

    plan: Plan
    chunk: Chunk
    stage: int
    group: int
    lines: tuple[tuple[Question, int], ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    thought: Written | None = None

    @once
    def told(self) -> tuple[Told, ...]:
        """The answers that the prompt restates: what a question needs, and of joint ones what is no line."""
        told = told_to(self.plan, self.chunk.listed, self.words)
        return tuple(one for one in told if not (self.chunk.joint and one[0].is_label))

    @once
    def template(self) -> Template:
        """The answer text; a joint one counts on from the earlier answers."""
        prefilled = self.chunk.joint and not self.plan.decision.images
        return template_of(self.plan, self.chunk, len(self.lines) if prefilled else 0)

    @property
    def canvas(self) -> Canvas:
        """The template as a canvas whose slots are free."""
        return _layout(self.plan.vocabulary, self.template, self.plan.canvas_head(self.thought))[0]

    @property
    def sets(self) -> tuple[Ids, ...]:
        """The label ids of all slots, cut into what one request may ask for."""
        return _layout(self.plan.vocabulary, self.template, ())[1]

    @once
    def prompt(self) -> tuple[Ids, Ids]:
        """The prompt's shared head and own tail; empty where there is a message instead."""
        if self.plan.decision.images:
            return (), ()
        return self._joint_prompt() if self.chunk.joint else self._isolated_prompt()

    @once
    def message(self) -> Message | None:
        """The prompt of a decision that shows images. The server makes it: nothing can follow its end, so
        earlier answers are restated ahead of the questions.
        """
        decision = self.plan.decision
        if not decision.images:
            return None
        text = self._joint_text if self.chunk.joint else f"{self.plan.isolated_text}{self._isolated_text}"
        return message_of(text, decision.images)

    @property
    def _isolated_text(self) -> str:
        (question,) = self.chunk.questions
        labels = labels_of(question, self.plan.vocabulary, ISOLATED)
        return isolated_tail(question, labels, ISOLATED, self.told)

    @property
    def _joint_text(self) -> str:
        format = format_of(self.plan, self.chunk)
        listed = [
            (question, labels_of(question, self.plan.vocabulary, format), format.head(index, question.id))
            for index, question in enumerate(self.chunk.listed)
        ]
        decision = self.plan.decision
        lines = tuple((question, spoken_answer(question, answer)) for question, answer in self.lines)
        told = restated((*lines, *self.told))
        return told + joint_head(listed, decision.text, decision.options.instructions)

    def _isolated_prompt(self) -> tuple[Ids, Ids]:
        vocabulary = self.plan.vocabulary
        closing = self.plan.closing(self.thought)
        return self.plan.isolated_head, (*encode_recurring(vocabulary, self._isolated_text), *closing)

    def _joint_prompt(self) -> tuple[Ids, Ids]:
        vocabulary, decision = self.plan.vocabulary, self.plan.decision
        format = format_of(self.plan, self.chunk)
        listed = [
            (question, labels_of(question, vocabulary, format), format.head(index, question.id))
            for index, question in enumerate((*(question for question, _ in self.lines), *self.chunk.listed))
        ]
        text = restated(self.told) + joint_head(listed, decision.text, decision.options.instructions)
        lines = [
            (index, question.id, labels_of(question, vocabulary, format)[answer])
            for index, (question, answer) in enumerate(self.lines)
        ]
        prefill = format.text(lines, vocabulary.family.label_gap) + format.separator if lines else ""
        tail = (*self.plan.closing(self.thought), *vocabulary.tokenizer.encode(prefill))
        return (*self.plan.opening, *encode_long(vocabulary, text)), tail

    @property
    def ids_asked(self) -> tuple[str, ...]:
        """The ids of the questions that this part reads."""
        return tuple(question.id for question in self.chunk.questions)

    def ids(self, draw: int) -> list[str]:
        """The read ids of a draw: stage/group/id set/draw/attempt."""
        return [f"{self.stage}/{self.group}/{place}/{draw}/0" for place in range(len(self.sets))]

    def seed(self, draw: int) -> int:
        """The noise seed of a draw. It hangs on nothing but the draw, so neighbours change no read."""
        return self.plan.decision.options.seed + draw

    def draws_wanted(self, results: Results) -> int:
        """How many draws this part takes, as far as the results can tell.

        Automatic sampling takes one, and `auto_max` in all when a slot of the first was undecided.
        """
        options = self.plan.decision.options
        if options.samples is not None:
            return options.samples
        if not all(isinstance(results.get(id), Rows) for id in self.ids(0)):
            return 1
        unsure = max(entropy(found.probabilities) for found in self.distributions(0, results))
        return options.auto_max if unsure > options.auto_threshold else 1

    def wanted(self, results: Results) -> list[Wanted]:
        """Every read that this part takes, as far as the results can tell; later draws follow a first."""
        automatic = self.plan.decision.options.samples is None
        return [
            Wanted(id, "label", int(automatic and draw > 0), draw, 0, self.seed(draw))
            for draw in range(self.draws_wanted(results))
            for id in self.ids(draw)
        ]

    def read(self, want: Wanted, results: Results) -> Read:
        """A wanted read, whole. Raises TooLong when the prompt does not fit the context."""
        head, tail = self.prompt
        self.plan.vocabulary.check_length(len(head) + len(tail) + self.canvas.width)
        ids = self.sets[int(want.id.split("/")[2])]
        steps = self.plan.decision.options.steps
        return Read(want.id, want.kind, head, tail, self.canvas, ids, want.seed, steps, self.message)

    def fold(self, results: Results) -> dict[str, Reading]:
        """The reading of each question, once all draws came back with rows."""
        by_draw = [self.distributions(draw, results) for draw in range(self.draws_wanted(results))]
        return {
            question.id: fold(found)
            for question, found in zip(self.chunk.questions, zip(*by_draw, strict=True), strict=True)
        }

    def distributions(self, draw: int, results: Results) -> list[Distribution]:
        """One distribution per question, from a draw whose reads all came back with rows."""
        rows = [row for id in self.ids(draw) if isinstance(row := results[id], Rows)]
        found: list[Distribution] = []
        for place, slot in enumerate(self.template.slots):
            logprobs: dict[int, float] = {}
            for ids, row in zip(self.sets, rows, strict=True):
                logprobs.update(zip(ids, row.logprobs[place], strict=True))
            found.append(distribution(slot, logprobs, rows[0].top[place]))
        return found


@lru_cache(maxsize=4096)
def _layout(vocabulary: Vocabulary, template: Template, head: Ids) -> tuple[Canvas, tuple[Ids, ...]]:
    """A template's canvas, with `head` ahead of it, and the id sets of its labels."""
    places = tuple(len(head) + slot.position for slot in template.slots)
    canvas = make_canvas(vocabulary, (*head, *template.ids), places)
    return canvas, id_sets([id for slot in template.slots for id in slot.label_ids])


def spoken_answer(question: Question, answer: int) -> str:
    """An answer in the words that a later prompt restates it with: a level by its text."""
    alternative = question.alternatives[answer]
    return (alternative.text if question.type == "score" else None) or alternative.name
