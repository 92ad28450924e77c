"""Images in the store: each once, by the SHA-256 of its bytes, for as long as a decision may need it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from workers.settings import Settings
from workers.store.store import Store

REMEMBERED_BYTES = 128 * 2**20
"""Bytes of images that a process remembers."""


class Images:
    """Reads and writes images. Every method raises StoreError when Redis cannot be reached."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._keep_s = settings.deadline_s + settings.retention_s
        self._known: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def _key(self, digest: str) -> str:
        return self._store.key("image", digest)

    async def keep(self, contents: Mapping[str, bytes]) -> None:
        """Keep images, by the SHA-256 (hex) that they are known by."""
        for digest, content in contents.items():
            await self._store.run(("SET", self._key(digest), content, "EX", self._keep_s))

    async def get(self, digest: str) -> bytes | None:
        """An image, or None when it is no longer kept."""
        if digest in self._known:
            self._known.move_to_end(digest)
            return self._known[digest]
        content: bytes | None
        (content,) = await self._store.run(("GET", self._key(digest)))
        if content is not None and digest not in self._known:
            self._known[digest] = content
            self._bytes += len(content)
            while self._bytes > REMEMBERED_BYTES:
                self._bytes -= len(self._known.popitem(last=False)[1])
        return content
