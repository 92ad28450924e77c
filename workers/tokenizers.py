"""Hugging Face tokenizers as the planner wants them."""

from __future__ import annotations

import copy
import gc
import re
from collections.abc import Sequence
from typing import Any

from planner.vocabulary import Vocabulary, make_vocabulary

_SENTINEL = "\x00user\x00"


class HubTokenizer:
    """A fast tokenizer loaded by transformers, from a folder or by a hub name.

    Two copies of the tokenizer are held: one spells special tokens out as text, for what users
    wrote, and one recognises them, for the chat template's own markup.
    """

    def __init__(self, name: str) -> None:
        from transformers import AutoTokenizer
        from transformers.utils import logging

        # What it has to say is logged as everything else is (workers/logs.py).
        logging.disable_default_handler()
        logging.enable_propagation()
        self._loaded: Any = AutoTokenizer.from_pretrained(name)
        self._markup: Any = self._loaded.backend_tokenizer
        self._plain: Any = copy.deepcopy(self._markup)
        self._plain.encode_special_tokens = True
        self._byte_level = "ByteLevel" in repr(self._markup.decoder)

    def encode(self, text: str) -> list[int]:
        """See planner.vocabulary.Tokenizer."""
        # The batch call leaves out the offsets, which nobody asks for and which take time.
        (encoding,) = self._plain.encode_batch_fast([text], add_special_tokens=False)
        return list(encoding.ids)

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """See planner.vocabulary.Tokenizer."""
        encodings = self._plain.encode_batch_fast(list(texts), add_special_tokens=False)
        return [list(encoding.ids) for encoding in encodings]

    def encode_markup(self, text: str) -> list[int]:
        """See planner.vocabulary.Tokenizer."""
        return list(self._markup.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: list[int]) -> str:
        """See planner.vocabulary.Tokenizer."""
        return str(self._markup.decode(ids, skip_special_tokens=False))

    def token_bytes(self, id: int) -> bytes:
        """See planner.vocabulary.Tokenizer."""
        return _token_bytes(self._markup.id_to_token(id), byte_level=self._byte_level)

    def eos_id(self) -> int | None:
        """See planner.vocabulary.Tokenizer."""
        found: int | None = self._loaded.eos_token_id
        return found

    def token_id(self, token: str) -> int | None:
        """See planner.vocabulary.Tokenizer."""
        found: int | None = self._markup.token_to_id(token)
        return found

    def chat(self, *, thinking: bool = False) -> tuple[str, str]:
        """See planner.vocabulary.Tokenizer."""
        # Templates ignore variables that they do not know; some do more than nothing for a false one.
        variables = {"enable_thinking": True} if thinking else {}
        text = self._loaded.apply_chat_template(
            [{"role": "user", "content": _SENTINEL}],
            tokenize=False,
            add_generation_prompt=True,
            **variables,
        )
        before, _, after = str(text).partition(_SENTINEL)
        return before, after

    def size(self) -> int:
        """See planner.vocabulary.Tokenizer."""
        return int(self._markup.get_vocab_size(with_added_tokens=True))


def _byte_alphabet() -> dict[str, int]:
    """The characters by which byte-level BPE writes bytes (GPT-2's table): printable ones as themselves."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(moved)}


_BYTES = _byte_alphabet()
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def _token_bytes(token: str, *, byte_level: bool) -> bytes:
    """The bytes of a token by its spelling in the vocabulary: byte-level BPE, or SentencePiece's way."""
    if byte_level:
        return (
            bytes(_BYTES[character] for character in token) if set(token) <= _BYTES.keys() else token.encode()
        )
    byte = _BYTE_TOKEN.fullmatch(token)
    return bytes.fromhex(byte[1]) if byte else token.replace("\u2581", " ").encode()


def settle_memory() -> None:
    """Leave what was loaded so far out of garbage collection: it stays for the life of the process.

    Importing transformers makes hundreds of thousands of objects, and every full collection would walk
    them all in the middle of somebody's decision.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def load_vocabulary(tokenizer: str, *, canvas: int, context: int | None) -> Vocabulary:
    """The vocabulary of the tokenizer in a folder, or of a hub name. Raises OSError when there is none."""
    return make_vocabulary(HubTokenizer(tokenizer), canvas=canvas, context=context)
