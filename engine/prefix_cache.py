"""A block-wise prefix cache, as vLLM's: full blocks of 16 tokens, least recently used goes first.

A block's key chains the key of the block before it, so a hit means the whole prefix is the same. The
cache salt and the images' hashes start the chain. Cost: one hash per 16 prompt tokens.
"""

from collections import OrderedDict

from engine.work import Prompt

BLOCK = 16


class PrefixCache:
    """Holds the keys of at most `size` blocks of 16 tokens."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def keys(self, prompt: Prompt) -> list[int]:
        """The chained key of each full block of a prompt."""
        key = hash((prompt.salt, prompt.images))
        ids = prompt.ids
        keys = []
        for start in range(0, len(ids) - BLOCK + 1, BLOCK):
            key = hash((key, ids[start : start + BLOCK]))
            keys.append(key)
        return keys

    def cached_tokens(self, keys: list[int]) -> int:
        """How many tokens at the prompt's start are cached."""
        hits = 0
        for key in keys:
            if key not in self._blocks:
                break
            hits += 1
        return hits * BLOCK

    def store(self, keys: list[int]) -> None:
        """Keep a prompt's blocks, its head as the most recently used."""
        blocks = self._blocks
        for key in reversed(keys):
            if key in blocks:
                blocks.move_to_end(key)
            else:
                blocks[key] = None
        while len(blocks) > self._size:
            blocks.popitem(last=False)

    def usage(self) -> float:
        """The used part, 0 to 1."""
        return len(self._blocks) / self._size if self._size else 0.0
