"""What the planner's tests share: decisions in few words, and engines that are pure functions."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from hypothesis import strategies as st

from planner.answers import Answers
from planner.decision import Alternative, Decision, Options, Question
from planner.plan import Plan, make_plan
from planner.reads import (
    MAX_IDS,
    Failure,
    Generation,
    Read,
    Result,
    Rows,
    Served,
    Tried,
    Wave,
    Written,
)
from planner.vocabulary import Tokenizer, Vocabulary
from planner.waves import next_wave

Engine = Callable[[Read], Result]
Writer = Callable[[Generation], Result]

GEMMA = {"<pad>": 0, "<eos>": 1, "<|channel>": 100, "<channel|>": 101, "<|turn>": 105, "<turn|>": 106}


def noul(id: str, instructions: str | None = None, **more: Any) -> Question:
    """A yes/no question."""
    return Question(id, "noul", instructions, (Alternative("yes"), Alternative("no")), **more)


def choice(id: str, names: Iterable[str], instructions: str | None = None, **more: Any) -> Question:
    """A choice among named options."""
    return Question(id, "choice", instructions, tuple(Alternative(name) for name in names), **more)


def score(id: str, levels: Iterable[str], instructions: str | None = None, **more: Any) -> Question:
    """A score on levels with these texts."""
    named = (Alternative(str(level), text, text) for level, text in enumerate(levels))
    return Question(id, "score", instructions, tuple(named), **more)


def object_(id: str, schema: Any = True, instructions: str | None = None, **more: Any) -> Question:
    """A question for a JSON value."""
    return Question(id, "object", instructions, (), schema=schema, **more)


def many(count: int) -> list[str]:
    """As many option names."""
    return [f"option {number}" for number in range(count)]


def decide(*questions: Question, state: Any = "Help!", **options: Any) -> Decision:
    """A decision about a state."""
    return Decision("m", state, questions, Options(**options))


def first_reads(vocabulary: Vocabulary, *questions: Question, **options: Any) -> tuple[Read, ...]:
    """The reads of the first wave of a decision."""
    wave = next_wave(make_plan(decide(*questions, **options), vocabulary), {})
    assert isinstance(wave, Wave)
    return wave.reads


def prompt_of(vocabulary: Vocabulary, read: Read) -> str:
    """A read's whole prompt as text, special tokens spelled out."""
    return vocabulary.tokenizer.decode([*read.head, *read.tail])


def answer_of(vocabulary: Vocabulary, read: Read) -> str:
    """The answer text in a read's canvas (first labels in the slots), without close and padding."""
    end = len(read.canvas.ids)
    while read.canvas.ids[end - 1] == vocabulary.pad:
        end -= 1
    assert read.canvas.ids[end - 1] == vocabulary.turn_close
    return vocabulary.tokenizer.decode(list(read.canvas.ids[: end - 1]))


def rows(read: Read, *slots: Sequence[float], top: int | None = None) -> Rows:
    """A result that gives each slot's label ids these probabilities; the last slot's are repeated."""
    filled = [slots[min(place, len(slots) - 1)] for place in range(len(read.canvas.free))]
    logprobs = tuple(tuple(math.log(p) for p in slot) for slot in filled)
    best = (read.ids[max(range(len(slot)), key=slot.__getitem__)] for slot in filled)
    return Rows(
        logprobs, tuple(best) if top is None else (top,) * len(filled), served=Served(model="diffusion")
    )


def first_label(read: Read) -> Rows:
    """An engine that is sure of the first label, whatever is asked."""
    rest = len(read.ids) - 1
    return rows(read, [0.98, *[0.01 / max(rest, 1)] * rest])


def telling(vocabulary: Vocabulary, table: Mapping[str, Sequence[float]]) -> Engine:
    """An engine of isolated reads: probabilities by the first words of a question's instructions.

    What the table does not name gets its first label.
    """

    def answer(read: Read) -> Rows:
        asked = vocabulary.tokenizer.decode(list(read.tail)).rpartition("Question: ")[2]
        for words, probabilities in table.items():
            if asked.startswith(words):
                return rows(read, probabilities)
        return first_label(read)

    return answer


def hashed(read: Read) -> Rows:
    """An engine whose every logprob is a hash of what the read holds: any change shows."""
    canvas = read.canvas.seeded(read.seed)
    content = blake2b(repr((read.head, read.tail, canvas, read.canvas.free)).encode()).digest()

    def unit(place: int, id: int) -> float:
        digest = blake2b(b"%b%d/%d" % (content, place, id), digest_size=6).digest()
        return int.from_bytes(digest) / 2**48

    places = range(len(read.canvas.free))
    return Rows(
        logprobs=tuple(tuple(-6 - 12 * unit(place, id) for id in read.ids) for place in places),
        top=tuple(
            read.canvas.ids[read.canvas.free[place]] if unit(place, -1) < 0.5 else canvas[0]
            for place in places
        ),
        served=Served(
            engine=f"engine-{content[0] % 3}",
            ms=float(content[1]),
            prompt_tokens=len(read.head) + len(read.tail),
            cached_tokens=content[2],
        ),
    )


def no_writer(asked: Generation) -> Result:
    """A writer for plans that ask for no text."""
    raise AssertionError(f"{asked.id} asks for a text")


@dataclass
class Played:
    """A decision from its first wave to its end."""

    waves: list[Wave]
    results: dict[str, Result]
    end: Answers | Failure

    @property
    def answers(self) -> Answers:
        """The answers, when that is how it ended."""
        assert isinstance(self.end, Answers), self.end
        return self.end

    @property
    def reads(self) -> list[Read]:
        """Every read in order of asking."""
        return [read for wave in self.waves for read in wave.reads]


def wrote(text: str, finish: str = "stop", tokens: int = 7) -> Written:
    """What an engine gives for a generation."""
    return Written(text, tokens, finish, SERVED_BY)


SERVED_BY = Served(model="diffusion")


def play(plan: Plan, engine: Engine = first_label, writer: Writer = no_writer) -> Played:
    """Run a plan on an engine, every result in its turn; a writer gives the texts."""
    waves: list[Wave] = []
    results: dict[str, Result] = {}
    while isinstance(step := next_wave(plan, results), Wave):
        assert not any(read.id in results for read in step.all)
        waves.append(step)
        results |= {read.id: engine(read) for read in step.reads}
        results |= {asked.id: writer(asked) for asked in step.generations}
    return Played(waves, results, step)


def check_vllm_rules(read: Read, vocabulary: Vocabulary) -> None:
    """Assert everything that vLLM asks of a canvas read, and what keeps its answers right."""
    canvas, ids = read.canvas, read.canvas.seeded(read.seed)
    assert len(ids) == canvas.width == len(canvas.ids)
    assert canvas.width % 16 == 0
    assert canvas.width <= vocabulary.canvas
    assert all(0 <= id < vocabulary.size for id in ids)
    assert sorted([*canvas.pinned, *canvas.free]) == list(range(canvas.width))
    assert all(ids[place] == canvas.ids[place] for place in canvas.pinned)
    close = max(place for place in canvas.pinned if ids[place] == vocabulary.turn_close)
    assert set(ids[close + 1 :]) == {vocabulary.pad}
    assert canvas.free
    assert max(canvas.free) < close
    assert 0 < len(read.ids) == len(set(read.ids)) <= MAX_IDS
    assert all(0 <= id < vocabulary.size for id in read.ids)
    assert read.steps > 0


@dataclass
class FakeTokenizer:
    """A tokenizer made of a pattern: what it matches is a token, numbered from 1000 as it is met."""

    pattern: str = r" ?[A-Za-z]+|\d|\s|."
    special: Mapping[str, int] = field(default_factory=lambda: GEMMA)
    ids: dict[str, int] = field(default_factory=dict)

    def encode(self, text: str) -> list[int]:
        return [self._id(piece) for piece in re.findall(self.pattern, text, re.DOTALL)]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def encode_markup(self, text: str) -> list[int]:
        return list(self._markup(text))

    def decode(self, ids: list[int]) -> str:
        spelled = {id: token for token, id in {**self.special, **self.ids}.items()}
        return "".join(spelled[id] for id in ids)

    def token_id(self, token: str) -> int | None:
        return self.special.get(token)

    def token_bytes(self, id: int) -> bytes:
        return self.decode([id]).encode()

    def eos_id(self) -> int | None:
        return None

    def chat(self, *, thinking: bool = False) -> tuple[str, str]:
        return "<|turn>user\n", "<turn|>\n<|turn>model\n"

    def size(self) -> int:
        return 262_144

    def _id(self, piece: str) -> int:
        return self.ids.setdefault(piece, 1000 + len(self.ids))

    def _markup(self, text: str) -> Iterator[int]:
        spelled = "|".join(map(re.escape, self.special)) or "(?!)"
        for piece in re.split(f"({spelled})", text):
            yield from [self.special[piece]] if piece in self.special else self.encode(piece)


_: type[Tokenizer] = FakeTokenizer


TEXTS = st.text(st.characters(codec="utf-8"))
SERVED = st.builds(
    Served,
    engine=TEXTS,
    model=TEXTS,
    ms=st.floats(0, 1e9),
    prompt_tokens=st.integers(0, 2**40),
    cached_tokens=st.integers(0, 2**40),
    tried=st.lists(st.builds(Tried, TEXTS, st.floats(0, 1e9), TEXTS), max_size=2).map(tuple),
)
"""Every way in which a read may have been served."""
