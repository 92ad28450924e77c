"""The tokenizer folder that is built from the GGUF."""

import subprocess
import sys
import time
from pathlib import Path

from tests.engine.support import EOS, PAD, ROOT, ids, tokenizer


def _folder(*arguments: str) -> Path:
    command = [sys.executable, "-m", "engine.tokenizer", *arguments]
    return Path(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip())


def test_the_second_call_only_prints_the_folder() -> None:
    first = _folder()
    began = time.monotonic()
    assert _folder() == first
    assert time.monotonic() - began < 0.5


def test_transformers_loads_the_folder() -> None:
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(str(_folder()))
    assert (loaded.eos_token, loaded.eos_token_id) == ("<|im_end|>", EOS)
    assert (loaded.pad_token, loaded.pad_token_id) == ("<|endoftext|>", PAD)
    assert (len(loaded), loaded.model_max_length) == (49152, 8192)
    chat = loaded.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert str(chat).endswith("<|im_start|>user\nHi<|im_end|>\n")


def test_it_splits_as_llama_cpp_does() -> None:
    """Ids as llama.cpp's own /tokenize gives them for this model."""
    assert ids("Hi 123  it's 45,6 \n\n x") == [
        26843, 216, 33, 34, 35, 216, 357, 506, 216, 36, 37, 28, 38, 38028, 1792,
    ]  # fmt: skip


def test_text_survives_a_round_trip() -> None:
    text = "naïve café 😀👨‍👩‍👧 日本語 ١٢٣ مرحبا\t\r\n<|im_start|>x"
    assert tokenizer().decode(ids(text), skip_special_tokens=False) == text


def test_a_folder_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    assert _folder("--out", str(tmp_path / "here")) == tmp_path / "here"
    assert {file.name for file in (tmp_path / "here").iterdir()} == {
        "tokenizer.json",
        "tokenizer_config.json",
    }
