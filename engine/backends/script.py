"""Answers from a file: for tests, demonstrations and benchmarks. Deterministic for a seed.

Everything but the noise of a canvas repeats in practice, so what a prompt shows, whose slot is whose, and
the rows of a rule are kept in bounded caches: a read costs a few look-ups.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from functools import lru_cache

import orjson

from engine.codec import Codec
from engine.errors import EngineError
from engine.faults import SLOW_SECONDS, FaultRaised
from engine.schema_sample import sample
from engine.script.distributions import (
    Labels,
    blank_rows,
    label_row,
    labels_among,
    pseudo_random,
    scripted,
    uniform,
)
from engine.script.rules import NOISE, Rule, Script, ScriptError
from engine.script.showing import Question, Shown, read_prompt
from engine.work import CanvasRead, Generation, Piece, Prompt, Row, held_rows, runs_of

_CONTEXT = 262_144  # a script has no limit of its own: this is DiffusionGemma's
_REMEMBERED = 256  # prompts and canvases: a long prompt is a megabyte, a blank's rows a third of one
_HIDDEN = -1  # stands for noise in a canvas's key
_DEFAULT_TEXT = "The script has no text for this prompt."
_WORDS = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """A run of slots, its question, the rules that match it, and the rows made so far."""

    run: range
    question: Question
    rules: tuple[Rule, ...]
    labels: Labels
    spaced: bool
    key: str
    rows: dict[tuple[int, int], list[Row]] = field(default_factory=dict)


class ScriptBackend:
    """One script file. Counts how often each rule with `times` was used."""

    slots: int | None = None

    def __init__(self, script: Script, codec: Codec, seed: int, context: int | None) -> None:
        self.name = script.model
        self.context = context or _CONTEXT
        self._script = script
        self._codec = codec
        self._seed = seed
        self._used: Counter[int] = Counter()
        self._shown = lru_cache(_REMEMBERED)(self._show)
        self._targets = lru_cache(_REMEMBERED)(self._find_targets)

    async def read(self, read: CanvasRead) -> list[list[Row]]:
        """For each draw the same held rows, and the slots as the rules say."""
        canvas = list(read.canvas)
        for slot in read.slots:
            canvas[slot] = _HIDDEN
        try:
            targets = self._targets(read.prompt, tuple(canvas), read.asked)
            for target in targets:
                await self._act_fault(target.rules)
            chosen = [self._choose(target) for target in targets]
            return [self._draw(read, targets, chosen, draw) for draw in range(read.samples)]
        except ScriptError as error:
            raise EngineError(f"script: {error}") from error

    async def generate(self, generation: Generation) -> AsyncGenerator[Piece, None]:
        """The text of the first rule that has one for this kind of generation."""
        rules = self._matching(generation.prompt)
        await self._act_fault(rules)
        text, finish = self._text(generation, rules)
        stopped = min((at for stop in generation.stop if (at := text.find(stop)) >= 0), default=len(text))
        left = generation.max_tokens
        for word in _WORDS.findall(text[:stopped]):
            ids = self._codec.encode(word)[:left]
            left -= len(ids)
            yield Piece(self._codec.decode(ids), [Row(token, {token: 0.0}) for token in ids])
            if not left:
                break
        yield Piece("", [], finish or ("stop" if left else "length"))

    async def close(self) -> None:
        """Nothing to let go of."""

    def _draw(
        self, read: CanvasRead, targets: tuple[_Target, ...], chosen: list[Rule | None], draw: int
    ) -> list[Row]:
        rows = held_rows(read)
        for target, rule in zip(targets, chosen, strict=True):
            alternatives = len(rule.alternatives()) if rule and len(target.run) == 1 else 1
            # Hashing whole numbers is the same in every process, so the alternative is too.
            alternative = hash((self._seed, read.seed or 0, draw, *read.noise())) % alternatives
            made = (rule.number if rule else 0, alternative)
            if made not in target.rows:
                target.rows[made] = self._rows(target, rule, alternative, read.asked)
            rows[target.run.start : target.run.stop] = target.rows[made]
        return rows

    def _rows(
        self, target: _Target, rule: Rule | None, alternative: int, asked: tuple[int, ...]
    ) -> list[Row]:
        if len(target.run) > 1:
            noise = NOISE if rule is None else rule.noise
            return blank_rows(
                self._written(target, rule, asked), len(target.run), asked, noise, self._codec.eos
            )
        if rule is not None:
            shares = scripted(rule, alternative, target.question, target.labels)
        elif self._script.default == "uniform":
            shares = uniform(target.labels)
        else:
            shares = pseudo_random(target.labels, target.key)
        filler = next(token for token in (self._codec.eos, *range(len(asked) + 1)) if token not in asked)
        return [label_row(shares, target.labels, asked, filler)]

    def _written(self, target: _Target, rule: Rule | None, asked: tuple[int, ...]) -> list[int]:
        text, literal = (None, False) if rule is None else rule.written()
        space = " " if target.spaced else ""
        if literal:
            return self._codec.encode(text or "")
        ids = self._codec.encode(space + text) if text else []
        # A window of a long text allows only its own tokens: what stands elsewhere is not there.
        if not ids or (asked and not set(ids) <= set(asked)):
            ids = self._codec.encode(f"{space}none")
        return [*ids, self._codec.eos]

    def _choose(self, target: _Target) -> Rule | None:
        blank = len(target.run) > 1
        for rule in target.rules:
            if rule.answers_slot(blank) and self._usable(rule):
                return rule
        if self._script.default == "error":
            raise ScriptError(f"no rule matches the question {target.question.text!r}")
        return None

    def _usable(self, rule: Rule) -> bool:
        """Whether a rule still counts; of a rule with a fault, `times` counts the fault alone."""
        if rule.times is None or rule.fault is not None:
            return True
        self._used[rule.number] += 1
        return self._used[rule.number] <= rule.times

    async def _act_fault(self, rules: tuple[Rule, ...]) -> None:
        for rule in rules:
            if rule.fault is None or (rule.times is not None and self._used[rule.number] >= rule.times):
                continue
            self._used[rule.number] += 1
            if rule.fault != "slow":
                raise FaultRaised(rule.fault)
            await asyncio.sleep(SLOW_SECONDS)

    def _show(self, prompt: Prompt) -> Shown:
        return read_prompt(self._codec.decode(list(prompt.ids)))

    def _find_targets(
        self, prompt: Prompt, canvas: tuple[int, ...], asked: tuple[int, ...]
    ) -> tuple[_Target, ...]:
        shown = self._shown(prompt)
        texts = [self._codec.token_text(token) for token in asked]
        targets = []
        done = 0
        for run in runs_of(at for at, token in enumerate(canvas) if token == _HIDDEN):
            lead = self._codec.decode(list(canvas[done : run.start]))
            question = shown.asked_before(lead)
            targets.append(
                _Target(
                    run=run,
                    question=question,
                    rules=self._matching(prompt, question),
                    labels=labels_among(asked, texts, question) if len(run) == 1 else {},
                    spaced=not lead[-1:].isspace(),
                    key=f"{self._seed}\0{hash(prompt.ids)}\0{prompt.images}\0{question.identity}",
                )
            )
            done = run.stop
        return tuple(targets)

    def _matching(self, prompt: Prompt, question: Question | None = None) -> tuple[Rule, ...]:
        shown = self._shown(prompt)
        questions = [question] if question else [shown.isolated, *shown.by_id.values()]
        return tuple(
            rule
            for rule in self._script.rules
            if any(rule.matches(asked.identity, asked.text, shown.text, prompt.images) for asked in questions)
        )

    def _text(self, generation: Generation, rules: tuple[Rule, ...]) -> tuple[str, str | None]:
        thinking = bool(generation.stop or generation.stop_ids)
        kinds = (
            ("object",)
            if generation.schema is not None
            else ("thought", "text")
            if thinking
            else ("text", "thought")
        )
        for kind in kinds:
            for rule in rules:
                if kind in rule.answers and self._usable(rule):
                    answer = rule.answers[kind]
                    return answer if isinstance(answer, str) else orjson.dumps(
                        answer
                    ).decode(), rule.finish_reason
        if self._script.default == "error":
            raise EngineError("script: no rule has a text for this generation")
        return (
            _DEFAULT_TEXT if generation.schema is None else orjson.dumps(sample(generation.schema)).decode()
        ), None
