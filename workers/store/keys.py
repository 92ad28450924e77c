"""API keys in the store: who may ask, and within which limits.

One hash, `keys`: field is the SHA-256 of a key in hex, value its record as JSON. A key has 256 random bits,
so that a fast hash without salt is enough: nobody finds it by guessing. The plain key is not kept. The hash
is configuration rather than data, and so has no expiry. A revoked record stays,
so that revoking the last key does not open the server.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from time import time

import orjson

from workers.store.store import Store, fields_of

KEY_PREFIX = "cvs_"

SHOWN = len(KEY_PREFIX) + 4
"""Characters of a key that its record shows, for recognising it."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is kept of a key.

    `prefix` is how the key begins; `created` and `revoked` are in seconds since 1970, `revoked` None
    while the key is good. `webhook_secret` signs its webhooks (Standard Webhooks: `whsec_` and base64),
    `salt` keeps its prompts apart from other keys' in the engines' prefix caches. `rate_per_minute`
    decisions may be asked in any minute, `most_open` may be open at once (0: no limit, for both).
    """

    id: str
    name: str
    prefix: str
    created: float
    revoked: float | None
    webhook_secret: str
    salt: str
    rate_per_minute: int = 0
    most_open: int = 0


def digest_of(key: str) -> str:
    """The field that a key's record stands under."""
    return sha256(key.encode()).hexdigest()


class Keys:
    """Reads and writes keys. Every method raises StoreError when Redis cannot be reached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hash = store.key("keys")

    async def create(
        self, name: str, *, rate_per_minute: int = 0, most_open: int = 0
    ) -> tuple[KeyRecord, str]:
        """Make a key: its record, and the key itself, which is not kept and cannot be had again."""
        key = KEY_PREFIX + secrets.token_urlsafe(32)
        record = KeyRecord(
            id=f"key_{secrets.token_hex(12)}",
            name=name,
            prefix=key[:SHOWN],
            created=time(),
            revoked=None,
            webhook_secret=f"whsec_{b64encode(secrets.token_bytes(32)).decode()}",
            salt=secrets.token_hex(16),
            rate_per_minute=rate_per_minute,
            most_open=most_open,
        )
        await self._put(digest_of(key), record)
        return record, key

    async def all(self) -> dict[str, KeyRecord]:
        """Every key there ever was, revoked ones among them, by the digest of the key."""
        (reply,) = await self._store.run(("HGETALL", self._hash))
        return _records(fields_of(reply))

    async def by_id(self, id: str) -> KeyRecord | None:
        """The key of an id, revoked or not. Cost: it reads all keys, which are few."""
        return next((record for record in (await self.all()).values() if record.id == id), None)

    async def by_digest(self, digest: str) -> KeyRecord | None:
        """The key of a digest (`digest_of`), revoked or not."""
        (value,) = await self._store.run(("HGET", self._hash, digest))
        return None if value is None else _record(value)

    async def revoke(self, id: str) -> KeyRecord | None:
        """Revoke a key; its record, or None when there is none. One that was revoked keeps its time."""
        for digest, record in (await self.all()).items():
            if record.id == id:
                if record.revoked is None:
                    record = replace(record, revoked=time())
                    await self._put(digest, record)
                return record
        return None

    async def _put(self, digest: str, record: KeyRecord) -> None:
        await self._store.run(("HSET", self._hash, digest, orjson.dumps(record)))


def _records(fields: Mapping[bytes, bytes]) -> dict[str, KeyRecord]:
    return {digest.decode(): _record(value) for digest, value in fields.items()}


def _record(value: bytes) -> KeyRecord:
    return KeyRecord(**orjson.loads(value))
