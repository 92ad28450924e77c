"""The receiver of the webhooks: checks each signature, and fails now and then as receivers do."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import orjson
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from bench.chaos.ledger import Ledger

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
FAILS = 0.05
"""Share of calls that are answered 500, once they were noted."""


class Receiver:
    """Where webhooks come in. `came(id)` is set once a decision's completion was told."""

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.url = ""
        self._ledger = ledger
        self._random = Random(seed)
        self._webhook = Webhook(SECRET)
        self._came: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def came(self, id: str) -> asyncio.Event:
        """The event that is set when a decision's completion was told."""
        return self._came[id]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Serve on a free port of this machine meanwhile."""
        app = web.Application()
        app.router.add_post("/hook", self._take)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            self._webhook.verify(body, {name.lower(): value for name, value in request.headers.items()})
        except WebhookVerificationError as error:
            self._ledger.broken("webhook", f"does not verify: {error}")
            return web.Response(status=400)
        told = orjson.loads(body)
        job = told["data"]
        self._ledger.hook(job["id"], told["type"], request.headers["webhook-id"], body)
        if told["type"] == "decision.completed":
            # The call may come before the response that says which number this id stands for.
            self._ledger.accepted(job["id"], job["metadata"]["number"], job["metadata"]["kind"])
            self._ledger.job(job)
        if self._random.random() < FAILS:
            return web.Response(status=500)
        if told["type"] == "decision.completed":
            self._came[job["id"]].set()
        return web.Response(status=204)
