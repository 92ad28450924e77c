"""The canvas fields of a request (`vllm_xargs.diffusion_*`), checked as vLLM checks them."""

from dataclasses import dataclass
from typing import Any

from engine import checks
from engine.checks import Body
from engine.errors import BadRequest
from engine.work import CanvasRead, Prompt

MAX_ASKED = 128
_STEP = 16
_PREFIX = "diffusion_"
_FIELDS = frozenset(
    _PREFIX + name
    for name in ("seed_canvas", "canvas_length", "pinned", "max_steps", "read_only", "constrained", "samples")
)

# A diffusion model has no use for these; the values beside each name change nothing and may pass.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "seed": (None,),
    "temperature": (None, 1),
    "min_p": (None, 0),
    "min_tokens": (None, 0),
    "logit_bias": (None, {}),
    "bad_words": (None, []),
    "allowed_token_ids": (None,),
    "response_format": (None, {"type": "text"}),
    "structured_outputs": (None,),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server bears. Counts are tokens; `samples` is 0 where engine samples are off."""

    vocabulary: int
    canvas: int
    context: int
    logprobs: int
    samples: int = 0
    full_width_only: bool = False


def has_canvas_fields(body: Body) -> bool:
    """Whether the request is for a diffusion model."""
    extra = body.get("vllm_xargs")
    return isinstance(extra, dict) and any(name.startswith(_PREFIX) for name in extra)


def is_read(body: Body) -> bool:
    """Whether a request with canvas fields is a read; one that is not read-only goes on from its canvas."""
    return checks.flag(checks.mapping(body, "vllm_xargs"), _PREFIX + "read_only")


def refuse_sampling(body: Body, samples: int) -> None:
    """Refuse the sampling fields that a diffusion model does not know. Engine-side draws need `seed`."""
    for name, harmless in _REFUSED.items():
        if body.get(name) not in harmless and not (name == "seed" and samples > 1):
            raise BadRequest(f"{name} is not supported by diffusion models: got {body[name]!r}", name)


def parse_canvas(body: Body, prompt: Prompt, top: int, limits: Limits) -> CanvasRead:
    """The canvas read that a request asks for. Raises `BadRequest`."""
    extra = checks.mapping(body, "vllm_xargs")
    _refuse_unknown(extra)
    samples = _samples(extra, limits)
    refuse_sampling(body, samples)
    width = _width(extra, limits)
    canvas = _seed_canvas(extra, width, limits)
    asked = parse_asked(body, limits)
    constrained = checks.flag(extra, "diffusion_constrained")
    if constrained and not asked:
        raise BadRequest("diffusion_constrained needs logprob_token_ids", "diffusion_constrained")
    check_context(prompt.length, width, limits.context)
    wanted = checks.integer(body, _limit_field(body), 1, default=width)
    return CanvasRead(
        prompt=prompt,
        canvas=canvas,
        slots=_slots(extra, width),
        steps=checks.integer(extra, "diffusion_max_steps", 1, default=1),
        asked=asked,
        top=top,
        rows=min(wanted, width),
        constrained=constrained,
        samples=samples,
        seed=checks.integer(body, "seed", 0) if body.get("seed") is not None else None,
        wanted=wanted,
    )


def parse_opening(body: Body, limits: Limits) -> tuple[int, ...]:
    """The ids that a generation begins with: the pinned head of its first canvas. Raises `BadRequest`."""
    extra = checks.mapping(body, "vllm_xargs")
    _refuse_unknown(extra)
    refuse_sampling(body, 1)
    for name in ("diffusion_constrained", "diffusion_samples"):
        if extra.get(name):
            raise BadRequest(f"{name} needs diffusion_read_only", name)
    checks.integer(extra, "diffusion_max_steps", 1, default=1)
    width = _width(extra, limits)
    canvas = _seed_canvas(extra, width, limits)
    if extra.get("diffusion_pinned") is None:
        return ()
    free = _slots(extra, width)
    held = width - len(free)
    if free != tuple(range(held, width)):
        raise BadRequest(
            "diffusion_pinned: of a generation this engine can only hold the head of the canvas",
            "diffusion_pinned",
        )
    return canvas[:held]


def parse_asked(body: Body, limits: Limits) -> tuple[int, ...]:
    """`logprob_token_ids`: at most 128 ids of the vocabulary, doubles dropped."""
    value = body.get("logprob_token_ids")
    if value is None:
        return ()
    asked = checks.token_ids(value, "logprob_token_ids", limits.vocabulary)
    if len(asked) > MAX_ASKED:
        raise BadRequest(
            f"logprob_token_ids holds {len(asked)} ids, at most {MAX_ASKED} are allowed", "logprob_token_ids"
        )
    return tuple(dict.fromkeys(asked))


def check_context(prompt: int, output: int, context: int) -> None:
    """Refuse what does not fit, in vLLM's words. All three are counts of tokens."""
    if prompt + output > context:
        raise BadRequest(
            f"This model's maximum context length is {context} tokens. However, you requested {output} "
            f"output tokens and your prompt contains {prompt} input tokens, for a total of "
            f"{prompt + output} tokens. Please reduce the length of the input prompt or the number of "
            "requested output tokens.",
            "input_tokens",
        )


def _refuse_unknown(extra: dict[str, Any]) -> None:
    for name in extra:
        if name.startswith(_PREFIX) and name not in _FIELDS:
            raise BadRequest(f"{name} is no canvas field: there are {', '.join(sorted(_FIELDS))}", name)


def _samples(extra: dict[str, Any], limits: Limits) -> int:
    if extra.get("diffusion_samples") is None:
        return 1
    if not limits.samples:
        raise BadRequest("diffusion_samples is not supported by this server", "diffusion_samples")
    return checks.integer(extra, "diffusion_samples", 1, limits.samples)


def _width(extra: dict[str, Any], limits: Limits) -> int:
    name = "diffusion_canvas_length"
    width = checks.integer(extra, name, 1, default=limits.canvas)
    if width % _STEP:
        raise BadRequest(f"{name} must be a multiple of {_STEP}, not {width}", name)
    if width > limits.canvas:
        raise BadRequest(f"{name} is {width}, the served canvas is {limits.canvas}", name)
    if limits.full_width_only and width != limits.canvas:
        raise BadRequest(
            f"{name} must be the served canvas of {limits.canvas}: without async scheduling only full-width "
            f"canvases work, not {width}",
            name,
        )
    return width


def _seed_canvas(extra: dict[str, Any], width: int, limits: Limits) -> tuple[int, ...]:
    name = "diffusion_seed_canvas"
    value = extra.get(name)
    if value is None:
        needs = next(
            (field for field in ("diffusion_pinned", "diffusion_read_only") if extra.get(field)), None
        )
        raise BadRequest(f"{needs or 'a canvas request'} needs diffusion_seed_canvas", needs or name)
    canvas = checks.token_ids(value, name, limits.vocabulary)
    if len(canvas) != width:
        raise BadRequest(f"{name} holds {len(canvas)} ids, the canvas is {width} wide", name)
    return canvas


def _slots(extra: dict[str, Any], width: int) -> tuple[int, ...]:
    name = "diffusion_pinned"
    value = extra.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        raise BadRequest(f"{name} must be a list of canvas positions", name)
    pinned = set(value)
    if pinned and not (min(pinned) >= 0 and max(pinned) < width):
        wrong = min(pinned) if min(pinned) < 0 else max(pinned)
        raise BadRequest(f"{name}: position {wrong} is outside the canvas of {width}", name)
    return tuple(position for position in range(width) if position not in pinned)


def _limit_field(body: Body) -> str:
    return "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
