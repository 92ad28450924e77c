"""The command line, parsed and checked."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine import liars
from engine.faults import Fault, parse_fault
from engine.latency import PROFILES, Profile, custom_profile
from engine.tool_calls import FORMATS

T = TypeVar("T")
_NO_PARSER = "none"
_BACKENDS = ("llama", "script", "upstream")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; `engine/README.md` describes each."""

    backend: str
    source: str
    host: str
    port: int
    profile: Profile
    profile_name: str
    canvas: int
    model_name: str | None
    max_logprobs: int
    max_model_len: int | None
    max_queued: int | None
    faults: tuple[Fault, ...]
    liar: str | None
    tokenizer: Path | None
    seed: int
    engine_samples: int
    full_width_only: bool
    cache_blocks: int
    metrics: bool
    parser: str | None


def parse_options(arguments: list[str] | None = None) -> Options:
    """Parse the command line; exits with a message when it is wrong."""
    given = _parser().parse_args(arguments)
    backend, source = given.backend
    return Options(
        backend=backend,
        source=source,
        host=given.host,
        port=given.port,
        profile=given.latency or PROFILES[given.profile],
        profile_name="custom" if given.latency else given.profile,
        canvas=given.canvas,
        model_name=given.model_name,
        max_logprobs=given.max_logprobs,
        max_model_len=given.max_model_len,
        max_queued=given.max_queued,
        faults=tuple(given.fault),
        liar=given.liar,
        tokenizer=given.tokenizer,
        seed=given.seed,
        engine_samples=given.engine_samples,
        full_width_only=given.full_width_only,
        cache_blocks=given.cache_blocks,
        metrics=given.metrics_off == "no",
        parser=None if given.tool_call_parser == _NO_PARSER else given.tool_call_parser,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description="The stand-in engine.")
    add = parser.add_argument
    add("--backend", type=_backend, default=("llama", ""), help="llama[:GGUF], script:FILE or upstream:URL")
    add("--profile", choices=sorted(PROFILES), default="zero", help="latency profile")
    add("--latency", type=_checked(custom_profile), help="BASE_MS,SLOPE_MS,BATCH instead of a profile")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8000, help="0 picks a free port")
    add("--canvas", type=_canvas, default=64, help="served canvas length in tokens, a multiple of 16")
    add("--model-name", help="served model name")
    add("--max-logprobs", type=int, default=32, help="largest K of logprobs")
    add("--max-model-len", type=int, help="context length in tokens")
    add("--max-queued", type=int, help="requests that may wait beyond the batch before 503")
    add(
        "--fault",
        type=_checked(parse_fault),
        action="append",
        default=[],
        help="NAME:RATE or dies:N, repeatable",
    )
    add("--liar", choices=liars.NAMES, help="answer 200 and lie")
    add("--tokenizer", type=Path, help="a Hugging Face tokenizer folder instead of the default model's")
    add("--seed", type=int, default=0, help="of faults and of the script's draws")
    add("--engine-samples", type=int, default=0, help="largest diffusion_samples; 0 refuses the field")
    add("--full-width-only", action="store_true", help="refuse canvases below the served length")
    add("--cache-blocks", type=int, default=65_536, help="prefix cache size in blocks of 16 tokens")
    add("--tool-call-parser", choices=(*FORMATS, _NO_PARSER), default="hermes", help="how calls are written")
    add("--metrics-off", choices=("yes", "no"), nargs="?", const="yes", default="no", help="no /metrics")
    return parser


def _backend(text: str) -> tuple[str, str]:
    kind, _, source = text.partition(":")
    if kind not in _BACKENDS:
        raise argparse.ArgumentTypeError(f"{kind!r} is no backend: there are {', '.join(_BACKENDS)}")
    if kind != "llama" and not source:
        raise argparse.ArgumentTypeError(f"{kind} needs what to answer from, as in {kind}:...")
    return kind, source.rstrip("/") if kind == "upstream" else source


def _canvas(text: str) -> int:
    length = int(text)
    if length < 16 or length % 16:
        raise argparse.ArgumentTypeError(f"the canvas must be a multiple of 16, not {length}")
    return length


def _checked(parse: Callable[[str], T]) -> Callable[[str], T]:
    def checked(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return checked
