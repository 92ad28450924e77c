"""The forms of the last few schemas: the same one is asked again and again."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from planner.schemas.compiler import compile_schema
from planner.schemas.forms import Form

FORMS_KEPT = 16


def form_of(schema: Any) -> Form:
    """The form of a schema. Raises Invalid."""
    return _kept_form(json.dumps(schema))


@lru_cache(maxsize=FORMS_KEPT)
def _kept_form(schema: str) -> Form:
    return compile_schema(json.loads(schema))
