"""Tool calls in a generation's text, as vLLM's tool parsers find them.

    --tool-call-parser hermes    <tool_call>\n{"name": "NAME", "arguments": {...}}\n</tool_call>
    --tool-call-parser gemma4    <|tool_call>call:NAME{key:<|"|>text<|"|>,other:7}<tool_call|>

A reader takes the text as it comes, for a stream and for a whole answer alike. Where vLLM gives up on
arguments that are no JSON, and shows the whole text as content, this one gives them as they are: a very small
model often writes such. Arguments that never end go up to the text's end.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

_numbers = count(1)


class Found(NamedTuple):
    """A piece of an answer: content, the name of a call that begins, or a part of its arguments."""

    content: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """How a model writes calls: `opening` ends where the arguments begin, `opened` writes one of a function.

    `whole` makes JSON of arguments; without it they are JSON as they are, so that they can be shown as they
    come. `skipped` is what may stand ahead of an answer without being content.
    """

    mark: str
    opening: re.Pattern[str]
    opened: Callable[[str], str]
    close: str
    whole: Callable[[str], str] | None = None
    skipped: str = ""


class Reader:
    """The calls in one generation."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._rest = ""
        self._inside = False
        self._ended = False
        self._scan = _Scan()
        self.calls = 0

    def feed(self, text: str, last: bool = False) -> list[Found]:
        """What is found once this has come; `last`: nothing more will."""
        if not (self.calls or self._inside or self._rest):
            text = text.removeprefix(self._format.skipped)
        self._rest += text
        found: list[Found] = []
        while (step := self._call(last) if self._inside else self._outside(last)) is not None:
            found += step
        return [one for one in found if any(one)]

    def _outside(self, last: bool) -> list[Found] | None:
        """Content up to the next call; None when there is nothing to say yet."""
        if (opening := self._format.opening.search(self._rest)) is not None:
            before, self._rest = self._rest[: opening.start()], self._rest[opening.end() :]
            self._inside, self._ended, self._scan = True, False, _Scan()
            self.calls += 1
            return [Found(content=before.strip()), Found(name=opening[1])]
        keep = 0 if last else _held(self._rest, self._format.mark)
        ready = self._rest[: len(self._rest) - keep]
        self._rest = self._rest[len(ready) :]
        # White space between and after calls is no content.
        return [Found(content=ready)] if ready.strip() or (ready and not self.calls) else None

    def _call(self, last: bool) -> list[Found] | None:
        """More of the arguments of the call; None when there is nothing to say yet."""
        close = self._rest.find(self._format.close)
        if close < 0 and not last:
            if self._format.whole or self._ended:
                return None
            keep = _partial(self._rest, self._format.close)
            ready, self._rest = self._rest[: len(self._rest) - keep], self._rest[len(self._rest) - keep :]
            return [Found(arguments=self._take(ready))] if ready else None
        ready = self._rest if close < 0 else self._rest[:close]
        self._rest = "" if close < 0 else self._rest[close + len(self._format.close) :]
        self._inside = False
        if self._format.whole:
            return [Found(arguments=self._format.whole(ready))]
        return [Found(arguments=self._take(ready))]

    def _take(self, text: str) -> str:
        """The part of a text that still belongs to the arguments: after their last brace nothing does."""
        if self._ended:
            return ""
        end = self._scan.end(text)
        self._ended = end is not None
        return text[:end]


def message_of(text: str, format: Format) -> tuple[dict[str, Any], bool]:
    """The message of a whole answer, and whether it calls anything."""
    content, calls = "", list[dict[str, Any]]()
    for found in Reader(format).feed(text, last=True):
        content += found.content
        if found.name:
            calls.append(_call(found.name))
        elif found.arguments:
            calls[-1]["function"]["arguments"] += found.arguments
    message: dict[str, Any] = {"role": "assistant", "content": content if content or not calls else None}
    return (message | {"tool_calls": calls} if calls else message), bool(calls)


def deltas_of(found: list[Found], reader: Reader) -> list[dict[str, Any]]:
    """What was found as the deltas of a stream."""
    number = reader.calls - sum(bool(one.name) for one in found) - 1
    deltas: list[dict[str, Any]] = []
    for one in found:
        if one.content:
            deltas.append({"content": one.content})
            continue
        number += bool(one.name)
        told = _call(one.name) if one.name else {"function": {"arguments": one.arguments}}
        deltas.append({"tool_calls": [{"index": number, **told}]})
    return deltas


def _call(name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": ""}
    return {"id": f"chatcmpl-tool-{next(_numbers)}", "type": "function", "function": function}


class _Scan:
    """Finds the end of a JSON value that comes in pieces."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def end(self, text: str) -> int | None:
        """The place after the value, when its end is in this piece and can be seen by a brace."""
        for place, character in enumerate(text):
            if self._escaped:
                self._escaped = False
            elif self._quoted:
                self._escaped = character == "\\"
                self._quoted = character != '"'
            elif character == '"':
                self._quoted = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    # One that nothing opened here closes what the arguments stand in.
                    return place + 1 + self._depth
        return None


def _held(text: str, mark: str) -> int:
    """Characters at the end of a text that may be the head of a call."""
    begun = text.rfind(mark)
    return len(text) - begun if begun >= 0 else _partial(text, mark)


def _partial(text: str, mark: str) -> int:
    """Characters at the end of a text that may be the head of a mark."""
    return next((size for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size])), 0)


_QUOTE = '<|"|>'
_GEMMA_WORD = re.compile(r'<\|"\|>(.*?)(?:<\|"\|>|$)|([{}\[\],:])|([^{}\[\],:<]+|<)', re.DOTALL)
_LITERAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?|true|false|null")


def _gemma_json(text: str) -> str:
    """Gemma's `{key:<|"|>text<|"|>,n:7}` as JSON; what is neither a literal nor quoted is a string too."""
    written = ""
    for word in _GEMMA_WORD.finditer(text):
        quoted, mark, bare = word.groups()
        if mark:
            written += ": " if mark == ":" else ", " if mark == "," else mark
        elif bare is None:
            written += json.dumps(quoted, ensure_ascii=False)
        elif bare.strip():
            bare = bare.strip()
            written += bare if _LITERAL.fullmatch(bare) else json.dumps(bare, ensure_ascii=False)
    return written


FORMATS: dict[str, Format] = {
    "hermes": Format(
        mark="<tool_call>",
        opening=re.compile(r'<tool_call>\s*\{\s*"name":\s*"([^"]+)",\s*"arguments":\s*'),
        opened=lambda name: f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {{',
        close="</tool_call>",
    ),
    "gemma4": Format(
        mark="<|tool_call>",
        opening=re.compile(r"<\|tool_call>call:([\w.-]+)(?=\{)"),
        opened=lambda name: f"<|tool_call>call:{name}{{",
        close="<tool_call|>",
        whole=_gemma_json,
        skipped="<|channel>thought\n<channel|>",
    ),
}
"""vLLM's names of tool parsers, and what each of them reads."""
