"""The secret that signs a webhook: its API key's own, or an open server's one."""

from __future__ import annotations

from workers.settings import Settings
from workers.store.keys import Keys


async def secret_for(owner: str, keys: Keys, settings: Settings) -> str | None:
    """The secret of a delivery's owner (empty: an open server), None when there is none.

    A revoked key's secret still signs what was asked for while the key was good. Raises StoreError.
    """
    if not owner:
        return settings.webhook_secret or None
    record = await keys.by_id(owner)
    return None if record is None else record.webhook_secret
