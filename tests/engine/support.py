"""What the tests of the engine share: prompts, canvases, and one function per request."""

import json
import math
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

ROOT = Path(__file__).parents[2]
EOS, PAD, NOISE = 2, 0, 900
TURN = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
SLOT = "\0"


@dataclass(frozen=True)
class Reply:
    """A status and the JSON body."""

    status: int
    body: Any


@dataclass(frozen=True)
class Server:
    """A running engine."""

    url: str
    process: subprocess.Popen[str] = field(repr=False)

    def post(self, path: str, body: Any, timeout: float = 30) -> Reply:
        """One request with a JSON body."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        return self._send(request, timeout)

    def get(self, path: str) -> str:
        """The text of a route."""
        with urllib.request.urlopen(self.url + path, timeout=10) as response:
            return str(response.read().decode())

    def complete(self, **fields: Any) -> Reply:
        """POST /v1/completions"""
        return self.post("/v1/completions", fields)

    def chat(self, text: str, **fields: Any) -> Reply:
        """POST /v1/chat/completions with one user message."""
        return self.post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **fields})

    def read(
        self, prompt: str, template: str, /, labels: Sequence[str] = ("yes", "no"), **changes: Any
    ) -> Reply:
        """A canvas read of a template in which `SLOT` stands for noise, asked for these labels."""
        return self.post("/v1/completions", canvas_read(prompt, template, labels, **changes))

    @staticmethod
    def _send(request: urllib.request.Request, timeout: float) -> Reply:
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return Reply(response.status, json.loads(response.read()))
        except urllib.error.HTTPError as error:
            return Reply(error.code, json.loads(error.read()))


def start(*arguments: str) -> Server:
    """Start an engine on a free port and wait for its ready line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", "--port", "0", *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("engine ready: "), line
    return Server(line.split()[2], process)


def refusal(*arguments: str) -> str:
    """What an engine that does not start says on standard error."""
    command = [sys.executable, "-m", "engine", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr


@cache
def tokenizer() -> Tokenizer:
    """The default model's tokenizer."""
    command = [sys.executable, "-m", "engine.tokenizer"]
    folder = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return Tokenizer.from_file(f"{folder}/tokenizer.json")


def ids(text: str) -> list[int]:
    """Token ids of a text."""
    return list(tokenizer().encode(text, add_special_tokens=False).ids)


def label_id(label: str) -> int:
    """The token of a label after `answer:`, with its space."""
    (token,) = ids(f" {label}")
    return token


def isolated(question: str, options: Sequence[str] = ("yes: yes", "no: no"), state: str = "Help!") -> str:
    """An isolated prompt as Canvass writes it."""
    return TURN.format("\n".join([state, "", f"Question: {question}", *options]))


def canvas_read(
    prompt: str, template: str, /, labels: Sequence[str] = ("yes", "no"), noise: int = NOISE, width: int = 16,
    xargs: dict[str, Any] | None = None, **changes: Any,
) -> dict[str, Any]:  # fmt: skip
    """The body of a read; `changes` are fields of the body, `xargs` canvas fields (None drops one)."""
    canvas: list[int] = []
    slots: list[int] = []
    for index, part in enumerate(template.split(SLOT)):
        if index:
            slots.append(len(canvas))
            canvas.append(noise + index)
        canvas += ids(part) if part else []
    canvas += [EOS, *[PAD] * width][: max(width - len(canvas), 0)]
    fields: dict[str, Any] = {
        "diffusion_seed_canvas": canvas,
        "diffusion_canvas_length": width,
        "diffusion_pinned": [at for at in range(width) if at not in slots],
        "diffusion_max_steps": 1,
        "diffusion_read_only": True,
    } | (xargs or {})
    body: dict[str, Any] = {
        "prompt": ids(prompt),
        "vllm_xargs": {name: value for name, value in fields.items() if value is not None},
        "logprob_token_ids": [label_id(label) for label in labels],
        "return_tokens_as_token_ids": True,
        "logprobs": 4,
        "max_tokens": width,
    }
    return {name: value for name, value in (body | changes).items() if value is not None}


def rows(reply: Reply, choice: int = 0) -> list[dict[str, float]]:
    """The rows of a completion: log-probabilities by `token_id:N`."""
    assert reply.status == 200, reply
    return list(reply.body["choices"][choice]["logprobs"]["top_logprobs"])


def share(row: dict[str, float], label: str) -> float:
    """A label's probability in a row."""
    return math.exp(row[f"token_id:{label_id(label)}"])


def slot_of(template: str, number: int = 0) -> int:
    """The canvas position of a template's slot."""
    return sum(len(ids(part)) if part else 0 for part in template.split(SLOT)[: number + 1]) + number


def written(reply: Reply, start_at: int, length: int) -> str:
    """What the likeliest token of each position of a blank spells, up to the turn close."""
    likeliest = [max(row, key=lambda name: row[name]) for row in rows(reply)[start_at : start_at + length]]
    tokens = [int(name.removeprefix("token_id:")) for name in likeliest]
    return str(tokenizer().decode(tokens[: tokens.index(EOS)] if EOS in tokens else tokens))
