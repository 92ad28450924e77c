"""The log-probabilities that a rule, or the default, gives to a slot. Pure functions."""

import hashlib
import math

from engine.script.rules import Rule, ScriptError
from engine.script.showing import Question
from engine.work import FLOOR, Row, best

# How far apart the default's random labels lie: the likeliest is at most e^4 times the unlikeliest.
_SPREAD = 4.0

Labels = dict[str, list[int]]


def labels_among(asked: tuple[int, ...], texts: list[str], question: Question) -> Labels:
    """The asked ids by the label they spell (with or without a space), of this question's labels only.

    Labels that are not asked in this request stand there without ids: more than 128 ids come in several
    requests, and each must give the same probabilities.
    """
    spelled: Labels = {}
    for token, text in zip(asked, texts, strict=True):
        spelled.setdefault(text.strip(), []).append(token)
    own = {label: spelled.get(label, []) for label in question.options}
    return own if any(own.values()) else spelled


def scripted(rule: Rule, alternative: int, question: Question, labels: Labels) -> dict[str, float]:
    """A probability per label: the rule's, the rest spread evenly over the labels that it does not name."""
    named: dict[str, float] = {}
    for name, share in rule.alternatives()[alternative].items():
        label = name if name in labels else question.label_of(name)
        if label is None:
            raise ScriptError(
                f"rule {rule.number}: {name!r} is neither a label nor an option of {question.text!r}"
            )
        named[label] = named.get(label, 0.0) + share
    others = [label for label in labels if label not in named]
    left = max(1.0 - sum(named.values()) - rule.other, 0.0)
    return named | {label: left / len(others) for label in others}


def uniform(labels: Labels) -> dict[str, float]:
    """Every label alike."""
    return dict.fromkeys(labels, 1 / len(labels)) if labels else {}


def pseudo_random(labels: Labels, key: str) -> dict[str, float]:
    """A probability per label from a hash of the key and the label: the same on every machine."""
    weights = {label: math.exp(_SPREAD * _fraction(f"{key}\0{label}")) for label in labels}
    total = sum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def label_row(shares: dict[str, float], labels: Labels, asked: tuple[int, ...], filler: int) -> Row:
    """One slot's row. What lies outside of the labels stands on the `filler` token."""
    logprobs = dict.fromkeys(asked, FLOOR)
    for label, share in shares.items():
        ids = labels.get(label, ())
        logprobs |= {token: _log(share / len(ids)) for token in ids}
    outside = 1.0 - sum(shares.values())
    if outside > 1e-9 or not logprobs:
        logprobs[filler] = _log(outside)
    return Row(best(logprobs), logprobs)


def blank_rows(written: list[int], length: int, asked: tuple[int, ...], noise: float, eos: int) -> list[Row]:
    """A blank's rows: each token nearly certain, `noise` on the other asked ids; then the turn close."""
    rows = []
    for token in [*written, *[eos] * length][:length]:
        others = [other for other in asked if other != token]
        spread = dict.fromkeys(others, _log(noise / len(others))) if others else {}
        logprobs = spread | {token: _log(1 - noise if others else 1.0)}
        rows.append(Row(best(logprobs), logprobs))
    return rows


def _fraction(text: str) -> float:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") / 2**64


def _log(share: float) -> float:
    return max(math.log(share), FLOOR) if share > 0 else FLOOR
