"""Fixtures of the planner's tests."""

import pytest

from engine.gguf_model import find_model
from engine.tokenizer import ensure_folder
from planner.vocabulary import Vocabulary
from workers.tokenizers import load_vocabulary


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    """The vocabulary of SmolLM2, served with a canvas of 64 tokens and a context nobody checks."""
    return load_vocabulary(str(ensure_folder(find_model(None))), canvas=64, context=None)
