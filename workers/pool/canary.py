"""Canaries: the small requests by which an engine proves what it can do."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from planner.canvas import WIDTH_STEP
from planner.decision import NO, YES, Alternative, Decision, Question
from planner.plan import make_plan
from planner.reads import Generation, Message
from planner.schemas.values import read_value
from planner.vocabulary import Vocabulary
from planner.waves import first_wave
from workers.pool.engine import Capabilities, Engine
from workers.pool.vllm import Broken, Call, Failed, Refused, VllmClient

_QUESTION = Question("canary", "noul", "Is this a canary?", (Alternative(YES), Alternative(NO)))
_DECISION = Decision(model="canary", state="A canary sings.", questions=(_QUESTION,))

SCHEMA = {
    "type": "object",
    "properties": {"bird": {"type": "string", "enum": ["canary"]}},
    "required": ["bird"],
    "additionalProperties": False,
}
"""What an engine has to write to prove that it keeps to a grammar: hardly any model would by itself."""

_GENERATION = Generation(
    "canary", "object", (), (), 64, "", Message(("Say hello.",), ()), grammar=json.dumps(SCHEMA)
)

_CANNOT = (Refused, Broken, Failed)
"""What an engine says of a read that it cannot do. Of one that does not answer in time nothing is known."""

MOST_SAMPLES = (32, 16, 8, 4, 2)


class Canary:
    """Sends canaries. `constrained` and `samples`: is it worth knowing whether an engine can."""

    def __init__(
        self, client: VllmClient, vocabulary: Vocabulary, *, constrained: bool, samples: bool
    ) -> None:
        self._client = client
        self._read = first_wave(make_plan(_DECISION, vocabulary)).reads[0]
        self._full = vocabulary.canvas
        self._wanted = {"constrained": constrained, "samples": samples}

    async def reads(self, engine: Engine, timeout_s: float) -> Capabilities:
        """What an engine can do, as far as its reads show. Raises an EngineError when it reads no canvas."""
        await self._one(engine, self._full, timeout_s)
        try:
            await self._one(engine, WIDTH_STEP, timeout_s)
        except Refused:
            return Capabilities(least_width=self._full).but(engine.said)
        return Capabilities(least_width=WIDTH_STEP).but(engine.said)

    async def learned(self, engine: Engine, timeout_s: float) -> Capabilities:
        """What else an engine can do. What it refuses, or does without effect, it cannot.

        Raises an EngineError when it does not say.
        """
        can = engine.can
        if not can.canvas:
            return can
        if self._wanted["constrained"]:
            can = replace(can, constrained=await self._constrained(engine, timeout_s))
        if self._wanted["samples"]:
            can = replace(can, engine_samples=await self._samples(engine, timeout_s))
        can = replace(can, generate=await self.generates(engine, timeout_s))
        return can.but(engine.said)

    async def _one(self, engine: Engine, width: int, timeout_s: float) -> None:
        """A read of a canvas of this width, or wider: one that does not end with its canvas is none.

        An autoregressive vLLM gives a row with the asked ids for every token that it writes, and it may well
        write as many as there are places; it goes on where it may.
        """
        call = Call(engine.model.name, width, timeout_s, beyond=width)
        await self._client.read(engine.url, self._read, call)

    async def _constrained(self, engine: Engine, timeout_s: float) -> bool:
        """Whether the label ids share all probability, as where an engine looks at no others."""
        try:
            call = Call(engine.model.name, engine.can.least_width, timeout_s, constrained=True)
            rows = await self._client.read(engine.url, self._read, call)
        except _CANNOT:
            return False
        return all(math.isclose(sum(map(math.exp, slot)), 1, abs_tol=1e-3) for slot in rows.logprobs)

    async def _samples(self, engine: Engine, timeout_s: float) -> int:
        """The most draws that one request may ask for."""
        for most in MOST_SAMPLES:
            try:
                call = Call(engine.model.name, engine.can.least_width, timeout_s, samples=most)
                await self._client.draws(engine.url, self._read, call)
            except _CANNOT:
                continue
            return most
        return 0

    async def generates(self, engine: Engine, timeout_s: float) -> bool:
        """Whether an engine writes under a grammar. Raises an EngineError when it does not say."""
        try:
            call = Call(engine.model.name, engine.can.least_width, timeout_s)
            written = await self._client.written(engine.url, _GENERATION, call)
        except (Refused, Broken):
            return False
        return bool(read_value(written.text, SCHEMA) == {"bird": "canary"})
