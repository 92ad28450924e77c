"""The producers: clients that ask in every way there is, and come again as sane clients do.

A decision is asked with an Idempotency-Key of its own. Whoever gets no answer, or one that says to come
again, does so at another API after a pause, with the same key and body, until the decision's time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from time import monotonic
from typing import Any

import aiohttp
import orjson

from bench.chaos.ledger import Ledger
from bench.chaos.receiver import Receiver
from bench.chaos.workload import BATCH_QUESTIONS, body_of, kind_of, state_of, wrong_answers

WAYS = ("sync", "sync", "wait", "poll", "long-poll", "events", "webhook", "webhook")
"""How answers are waited for, as often as a way is named."""

AGAIN = frozenset({409, 429, 500, 502, 503, 504, 529})
"""Statuses after which a client comes again. A 500 that an idempotent client gets again is final."""

RETRYABLE = frozenset({"no_engine", "expired", "gone"})
"""Codes of failures after which the same request is worth asking again."""

REQUEST_S = 25.0
PAUSE_S = 0.4
MOST_FAULTS = 3
"""Final failures that a client takes for one number before it gives up."""

CONNECTION = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(slots=True)
class Producers:
    """The clients of one run. `urls` are the APIs, `patience_s` how long a number is asked for in all."""

    urls: Sequence[str]
    ledger: Ledger
    receiver: Receiver
    session: aiohttp.ClientSession
    seed: int
    patience_s: float

    async def ask(self, number: int) -> None:
        """Ask one decision until it is answered, or has failed for good."""
        kind, way = kind_of(number), Random(f"{self.seed} way {number}").choice(WAYS)
        body = body_of(number, kind)
        if way == "webhook":
            body |= {"webhook": self.receiver.url, "webhook_events_filter": ["start", "completed"]}
        headers = {"idempotency-key": f"chaos-{self.seed}-{number}"}
        if way != "sync":
            headers["prefer"] = "wait=5" if way == "wait" else "respond-async"
        self.ledger.ways[way] += 1
        until, failures = monotonic() + self.patience_s, 0
        for turn in count(number):
            if monotonic() > until:
                self.ledger.broken(f"number {number}", f"{way}: nobody answered its client in time")
                return
            reply = await self._post(f"{self._api(turn)}/v1/systemone", body, headers)
            if reply is None:
                continue
            status, id, said = reply
            if id:
                self.ledger.accepted(id, number, kind)
            if way == "webhook" and status in (200, 202):
                self.ledger.hooked.add(id)
            if status == 200:
                self.ledger.answer(id, said)
                self.ledger.answered += 1
                return
            if status == 202:
                job = await self._follow(id, "long-poll" if way == "wait" else way, until)
                if job is None:
                    self.ledger.broken(id, f"{way}: its client never heard of its end")
                    return
                self.ledger.job(job)
                if job["status"] == "succeeded":
                    self.ledger.answered += 1
                    return
                if job["error"]["code"] not in RETRYABLE:
                    return
                failures += 1
            elif status in (500, 502):
                failures += 1
            elif status not in AGAIN:
                self.ledger.broken(f"number {number}", f"was refused with {status}: {said}")
                return
            if failures > MOST_FAULTS:
                return

    async def batch(self, first: int, states: int) -> None:
        """Ask about states in a batch, and read its lines, from API to API."""
        lines = [
            {"custom_id": f"s{number}", "state": state_of(number)} for number in range(first, first + states)
        ]
        body = {"model": "jev-latest", "questions": BATCH_QUESTIONS, "states": lines}
        headers = {"idempotency-key": f"chaos-batch-{self.seed}-{first}"}
        until, seen = monotonic() + 2 * self.patience_s, 0
        posted = ""
        for turn in count(first):
            if monotonic() > until:
                self.ledger.broken(f"batch {posted or first}", f"{seen} lines of {states} came in time")
                return
            if not posted:
                reply = await self._post(f"{self._api(turn)}/v1/batches", body, headers)
                if reply is not None and reply[0] == 202:
                    posted = reply[2]["id"]
                continue
            after = f"?after={seen - 1}" if seen else ""
            async for line in self._lines(f"{self._api(turn)}/v1/batches/{posted}/results{after}"):
                self._check_line(posted, first, seen, line)
                seen += 1
            if seen >= states:
                if seen > states:
                    self.ledger.broken(f"batch {posted}", f"{seen} lines for {states} states")
                return

    def _check_line(self, batch: str, first: int, place: int, line: dict[str, Any]) -> None:
        self.ledger.lines[line["status"]] += 1
        number = first + place
        if (line["index"], line["custom_id"]) != (place, f"s{number}"):
            self.ledger.broken(f"batch {batch}", f"line {place} is {line}")
        elif line["status"] == "succeeded":
            for wrong in wrong_answers(number, "labels", line["result"]["answers"]):
                self.ledger.broken(f"batch {batch}", f"line {place} is wrong: {wrong}")
        elif line["error"]["code"] not in RETRYABLE:
            self.ledger.broken(f"batch {batch}", f"line {place} failed: {line['error']}")

    async def _follow(self, id: str, way: str, until: float) -> dict[str, Any] | None:
        """The job once it is done, waited for in one way; None when that took too long."""
        seen = 0
        for turn in count():
            if monotonic() > until:
                return None
            url = f"{self._api(turn)}/v1/jobs/{id}"
            if way == "webhook":
                came = self.receiver.came(id)
                try:
                    await asyncio.wait_for(came.wait(), 10)
                except TimeoutError:
                    self.ledger.tries["webhook waited for longer"] += 1
            elif way == "events":
                seen = await self._watch(id, f"{url}/events", seen)
            elif way == "poll":
                await asyncio.sleep(PAUSE_S)
            job = await self._get(f"{url}?wait=8" if way == "long-poll" else url)
            if job is not None and job["done"]:
                return job
        return None

    async def _watch(self, id: str, url: str, seen: int) -> int:
        """Read a job's events, and see that they are numbered without a gap; the last number."""
        number = seen
        try:
            async with self.session.get(url, headers={"last-event-id": str(seen)}) as response:
                if response.status != 200:
                    self.ledger.tries[f"events {response.status}"] += 1
                    await asyncio.sleep(PAUSE_S)
                    return number
                async for raw in response.content:
                    name, _, value = raw.decode().strip().partition(": ")
                    if name == "id":
                        if int(value) != number + 1:
                            self.ledger.broken(id, f"event {value} came after event {number}")
                        number = int(value)
        except CONNECTION as error:
            self.ledger.tries[f"events {type(error).__name__}"] += 1
            await asyncio.sleep(PAUSE_S)
        return number

    async def _lines(self, url: str) -> AsyncIterator[dict[str, Any]]:
        try:
            async with self.session.get(url) as response:
                if response.status != 200:
                    self.ledger.tries[f"lines {response.status}"] += 1
                    await asyncio.sleep(PAUSE_S)
                    return
                async for line in response.content:
                    if not line.endswith(b"\n"):
                        return  # it was cut off, and is asked for again
                    yield orjson.loads(line)
        except CONNECTION as error:
            self.ledger.tries[f"lines {type(error).__name__}"] += 1
            await asyncio.sleep(PAUSE_S)

    async def _post(self, url: str, body: Any, headers: dict[str, str]) -> tuple[int, str, Any] | None:
        """Status, decision id and body of a reply; None when none came. Pauses where it says to."""
        limit = aiohttp.ClientTimeout(total=REQUEST_S)
        try:
            async with self.session.post(url, json=body, headers=headers, timeout=limit) as response:
                content = await response.read()
        except CONNECTION as error:
            self.ledger.tries[type(error).__name__] += 1
            await asyncio.sleep(PAUSE_S)
            return None
        id = response.headers.get("x-typesafe-request-id", "")
        try:
            said = orjson.loads(content)
        except orjson.JSONDecodeError:
            said = content
        if response.status not in (200, 202):
            self.ledger.tries[f"{response.status} {_reason(said)}"] += 1
            await asyncio.sleep(min(3.0, float(response.headers.get("retry-after", PAUSE_S))))
        return response.status, id, said

    async def _get(self, url: str) -> dict[str, Any] | None:
        limit = aiohttp.ClientTimeout(total=REQUEST_S)
        try:
            async with self.session.get(url, timeout=limit) as response:
                if response.status == 200:
                    found: dict[str, Any] = await response.json()
                    return found
                self.ledger.tries[f"job {response.status}"] += 1
        except CONNECTION as error:
            self.ledger.tries[f"job {type(error).__name__}"] += 1
        await asyncio.sleep(PAUSE_S)
        return None

    def _api(self, turn: int) -> str:
        return self.urls[turn % len(self.urls)]


def _reason(said: Any) -> str:
    """A refusal in a few words, without what differs from one to the next."""
    detail = said.get("detail") if isinstance(said, dict) else None
    message = detail.get("message", "") if isinstance(detail, dict) else str(detail)
    words = ("no answer within", "no engine", "Idempotency", "could not be planned", "store", "deadline")
    return next((word for word in words if word in message), message[:60])
