"""The courier: makes the attempts of webhooks that are due, on the worker's event loop.

The clock (`look`) runs in every worker. It takes what is due and publishes its names as Celery tasks; the
times themselves stand in the store, because a Celery countdown longer than the visibility timeout is
delivered again and again.

The task goes through the `interactive` queue, so that whoever serves decisions delivers webhooks, without a
queue to forget in a deployment. It holds nobody up there: `take` claims and returns, after one pipeline to
the store, while the attempts go on as coroutines. So a receiver that hangs costs an open socket and no pool
thread. The claim, not the unacknowledged message, is what a killed worker leaves behind: it runs out, and
the clock of another publishes the delivery again. More than CANVASS_WEBHOOKS_IN_FLIGHT at once, or
MOST_PER_HOST at one host, are not taken, so that a host that hangs leaves room for others; they come again a
few seconds later, here or at a worker with room.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic, time
from urllib.parse import urlsplit

import aiohttp
import structlog

from workers.dispatch import Dispatcher
from workers.failpoints import reach
from workers.metrics import WorkerMetrics
from workers.settings import Settings
from workers.store.deliveries import Attempt, Deliveries, Delivery
from workers.store.keys import Keys
from workers.store.store import StoreError
from workers.webhooks.connection import Resolve, SystemResolver, guarded_session
from workers.webhooks.guard import Allowed, Unsafe, parse_allowed, target_of
from workers.webhooks.payload import body_of, headers_of
from workers.webhooks.schedule import after_attempt, retry_after_s
from workers.webhooks.secret import secret_for
from workers.webhooks.signing import UNSET

LOOK_EVERY_S = 0.5
MOST = 200
"""Deliveries that one look takes, and one message carries."""

MOST_PER_HOST = 32
"""Attempts that one worker process has under way at one host."""

READ_AT_MOST = 4096
"""Bytes of a receiver's response that are read."""

EXCERPT = 500
"""Characters of it that are kept."""

EXCERPT_WITHIN_S = 2.0
"""Seconds that a response's body may take after its headers; the status has decided by then."""

CLOSE_WITHIN_S = 2.0
"""Seconds that a worker which ends gives its attempts; the others are made again elsewhere."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver said: its status, the pause it asks for in seconds, how its body begins."""

    status: int
    retry_after_s: float | None
    excerpt: str


class Courier:
    """Takes deliveries that are due, and attempts them."""

    def __init__(
        self,
        deliveries: Deliveries,
        keys: Keys,
        dispatcher: Dispatcher,
        settings: Settings,
        metrics: WorkerMetrics,
    ) -> None:
        self._metrics = metrics
        self._deliveries = deliveries
        self._keys = keys
        self._dispatcher = dispatcher
        self._settings = settings
        self._allowed = parse_allowed(settings.webhook_allow)
        self._resolver = SystemResolver()
        self._under_way: set[asyncio.Task[None]] = set()
        self._at_host: Counter[str] = Counter()

    async def look(self) -> None:
        """Publish what is due now. Raises StoreError or PublishError; it is then published later."""
        names = await self._deliveries.due(MOST)
        if names:
            await self._dispatcher.publish_deliveries(names)

    async def take(self, names: Sequence[str]) -> None:
        """Claim deliveries, and begin an attempt of each; returns before they end. Raises StoreError."""
        room = self._settings.webhooks_in_flight - len(self._under_way)
        if room <= 0:
            return
        crowded: list[Delivery] = []
        for delivery in await self._deliveries.claim(names[:room]):
            reach("handed")
            host = urlsplit(delivery.url).netloc
            if self._at_host[host] >= MOST_PER_HOST:
                crowded.append(delivery)
            else:
                self._begin(delivery, host)
        if crowded:
            await self._deliveries.defer(crowded)

    def _begin(self, delivery: Delivery, host: str) -> None:
        def ended(attempt: asyncio.Task[None]) -> None:
            self._under_way.discard(attempt)
            self._at_host[host] -= 1
            if not self._at_host[host]:
                del self._at_host[host]

        attempt = asyncio.create_task(self._attempt(delivery))
        self._under_way.add(attempt)
        self._at_host[host] += 1
        attempt.add_done_callback(ended)

    async def close(self) -> None:
        """Let the attempts under way end, for a moment, and drop the rest."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=CLOSE_WITHIN_S)
            for attempt in late:
                attempt.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._resolver.close()

    async def _attempt(self, delivery: Delivery) -> None:
        """Make one attempt and keep what came of it. A fault of ours is logged; the lease then runs out."""
        try:
            await self._deliver(delivery)
        except StoreError as error:
            said = {"decision": delivery.id, "delivery": delivery.name, "reason": str(error)}
            log.warning("webhook attempt not kept", **said)
        except Exception:
            log.exception(
                "webhook failed by a fault of Canvass", decision=delivery.id, delivery=delivery.name
            )

    async def _deliver(self, delivery: Delivery) -> None:
        at, start, pause = time(), monotonic(), None
        secret = await secret_for(delivery.owner, self._keys, self._settings)
        status = error = excerpt = None
        if secret is None:
            error = f"the API key {delivery.owner!r} is no longer known" if delivery.owner else UNSET
        else:
            body = body_of(delivery.id, delivery.fields)
            headers = headers_of(delivery.name, body, secret, at)
            answer = await post(
                delivery.url,
                body,
                headers,
                allowed=self._allowed,
                resolve=self._resolver,
                within_s=self._settings.webhook_timeout_s,
            )
            if isinstance(answer, Answer):
                status, pause, excerpt = answer.status, answer.retry_after_s, answer.excerpt
                error = error_of(status)
            else:
                error = answer
        attempt = Attempt(at, round(1000 * (monotonic() - start), 1), status, error, excerpt)
        then = after_attempt(
            status,
            place=delivery.place,
            first=at if delivery.first is None else delivery.first,
            now=time(),
            # Spreads calls in time; nobody gains by guessing it.
            chance=random.random(),
            retry_after_s=pause,
            pace=self._settings.webhook_pace,
        )
        reach("delivered")
        if await self._deliveries.record(delivery, attempt, then):
            self._metrics.attempts(then.state).inc()
        if error is not None:
            said = {"decision": delivery.id, "delivery": delivery.name, "reason": error, "state": then.state}
            say = log.info if then.state == "pending" else log.warning
            say("webhook not delivered", **said)


def error_of(status: int) -> str | None:
    """What is wrong with a receiver's status; None for a success."""
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"the receiver answered {status}: redirects are not followed"
    return f"the receiver answered {status}"


async def post(
    url: str,
    body: bytes,
    headers: dict[str, str],
    *,
    allowed: Allowed,
    resolve: Resolve,
    within_s: float,
) -> Answer | str:
    """One attempt: the receiver's answer, or why there is none. Takes `within_s` seconds at most, from
    the host's name to the response's headers, and a little more for what is read of its body.
    """
    try:
        target = target_of(url, allowed)
        async with guarded_session(target, allowed, resolve) as session:
            async with asyncio.timeout(within_s):
                response = await session.post(url, data=body, headers=headers, allow_redirects=False)
            async with response:
                excerpt = await _excerpt(response)
                return Answer(response.status, retry_after_s(response.headers, time()), excerpt)
    except TimeoutError:
        return f"no answer within {within_s:g} s"
    except Unsafe as error:
        return f"refused: {error}"
    except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
        return f"no answer: {error or type(error).__name__}"


async def _excerpt(response: aiohttp.ClientResponse) -> str:
    """How a response's body begins. One that is slow or breaks off gives what came of it."""
    content = bytearray()
    try:
        async with asyncio.timeout(EXCERPT_WITHIN_S):
            while len(content) < READ_AT_MOST and (
                piece := await response.content.read(READ_AT_MOST - len(content))
            ):
                content += piece
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        log.debug("webhook response cut short", reason=repr(error))
    return content.decode(errors="replace")[:EXCERPT]
