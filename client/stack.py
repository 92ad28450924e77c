"""A whole Canvass on this machine: Redis, stand-in engines, workers and APIs as child processes.

    with Stack(engines="script:answers.yaml", workers=2) as stack:
        httpx2.post(f"{stack.url}/v1/systemone", json=decision)

Used by `canvass up`, `canvass demo`, the tests and the benchmarks. The floors are started as modules
(`python -m api`), never imported.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from client import redis_server
from client.errors import StopRequested
from client.http import is_url_list, readiness, served_models
from client.ports import free_port, local_url, require_free
from client.process import Child, Guard, wait_until
from client.recipes import Recipes

# The newline proves that the whole line is there.
_READY = re.compile(r"(https?://[^\s,;)]+).*\n")

# Seconds after which a start says what it still waits for: an engine may be loading a large model.
_PATIENCE_S = 10.0

T = TypeVar("T")


class Stack:
    """The processes of one Canvass, up from `start` (or `with`) to `stop`.

    engines: `llama`, `script:FILE` or `upstream:URL` for stand-ins, or URLs separated by commas.
    engine_count, profile, engine_args: how many stand-ins, their latency profile, further arguments;
    each_engine_args: those that the first, the second and so on alone gets. redis_args: arguments of Redis.
    workers, apis: processes of each. batch_workers: further workers, for batches alone and at low priority;
    with 0 the ordinary ones serve batches too, otherwise they do not. host, port: where the first API
    listens; port 0 is a free one. redis_url: a Redis to use; None starts one. data: folder of Redis and the
    logs; None is a temporary folder, removed at the end. env: settings (`CANVASS_...`) and other variables
    of API and workers, which see no other `CANVASS_` variable of this process. timeout_s: seconds to come
    up, None for no limit. stopping: an event that ends a start with `StopRequested`. report: called with a
    line of progress.

    The stack is for one thread at a time. Should this process be killed, a guard ends the children.
    """

    def __init__(
        self,
        *,
        engines: str = "llama",
        engine_count: int = 1,
        profile: str = "zero",
        engine_args: Sequence[str] = (),
        each_engine_args: Sequence[Sequence[str]] = (),
        workers: int = 1,
        batch_workers: int = 0,
        apis: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        redis_url: str | None = None,
        redis_args: Sequence[str] = (),
        data: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = 120.0,
        stopping: threading.Event | None = None,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.redis: Child | None = None
        self.engines: list[Child] = []
        self.workers: list[Child] = []
        self.apis: list[Child] = []
        self.redis_url = redis_url or ""
        self.engine_urls: list[str] = []
        self.urls: list[str] = []
        self.models: list[str] = []
        self._backend = "" if is_url_list(engines) else engines
        if not self._backend:
            self.engine_urls = [url.strip().rstrip("/") for url in engines.split(",") if url.strip()]
        self._counts = (engine_count if self._backend else 0, workers, batch_workers, apis)
        self._engine_args = ("--profile", profile, *engine_args)
        self._each_engine_args = tuple(each_engine_args)
        self._redis_args = tuple(redis_args)
        self._host, self._port = host, port
        self._data = data
        self._extra = dict(env or {})
        self._settings: dict[str, str] = {}
        self._timeout_s = timeout_s
        self._stopping = stopping
        self._report = report
        self._opened: Recipes | None = None
        self._tokenizer: Child | None = None

    @property
    def url(self) -> str:
        """The base URL of the first API."""
        return self.urls[0]

    @property
    def logs(self) -> Path:
        """The folder with one log file per child, in the data folder."""
        return self._recipes.logs

    @property
    def children(self) -> list[Child]:
        """Every process, in the order in which they are ended."""
        return [*self.apis, *self.workers, *self.engines, *([self.redis] if self.redis else [])]

    @property
    def uses_stand_in(self) -> bool:
        """Whether the engines are the stack's own."""
        return bool(self._backend)

    @property
    def _recipes(self) -> Recipes:
        if self._opened is None:
            raise RuntimeError("the stack is not running")
        return self._opened

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything; returns when the first decision can be served. Raises `StackError`."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """Raise `StopRequested` when asked to stop, `ChildEnded` when a child ended by itself."""
        if self._stopping is not None and self._stopping.is_set():
            raise StopRequested(StopRequested.__doc__)
        for child in self.children:
            child.require_alive()

    def add_worker(self, env: Mapping[str, str] | None = None) -> Child:
        """Start one more worker, with `env` over the settings of the others. Returns at once."""
        worker = self._recipes.worker(len(self.workers) + 1, {**self._settings, **(env or {})})
        worker.start()
        self.workers.append(worker)
        return worker

    def add_engine(self, *arguments: str) -> Child:
        """Start one more stand-in engine, with further arguments of its own, ready on return; workers started
        later will know it.
        """
        engine = self._start_engine(arguments)
        self._await_engine(engine)
        self._settings["CANVASS_ENGINES"] = ",".join(self.engine_urls)
        return engine

    def restart(self, child: Child) -> None:
        """Start a child that ended, at its old address; returns when it answers again."""
        child.start()
        if child in self.engines:
            self._await_engine(child)
        elif child in self.apis:
            self._await_api(self.urls[self.apis.index(child)])
        elif child is self.redis:
            self._await_redis()

    def stop(self) -> None:
        """End everything in order: APIs, workers, engines, Redis. Nothing is left; may be repeated."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        tokenizer = [self._tokenizer] if self._tokenizer else []
        redis = [self.redis] if self.redis else []
        for rank in (self.apis, self.workers, [*self.engines, *tokenizer], redis):
            for child in rank:
                child.terminate()
            for child in rank:
                child.stop()
        opened.guard.close()
        os.close(opened.lock)
        if self._data is None:
            shutil.rmtree(opened.logs.parent, ignore_errors=True)

    def strike(self) -> None:
        """SIGKILL every child without waiting, for one who cannot wait for `stop` that is under way."""
        for child in self.children:
            child.strike()

    def _start(self) -> None:
        engines, workers, batch_workers, apis = self._counts
        if self._port:
            require_free(self._host, self._port)
        self._opened = self._open()
        if not self.redis_url:
            self._start_redis()
        if self._backend:
            self._tokenizer = self._recipes.tokenizer()
            self._tokenizer.start()
        for number in range(engines):
            self._start_engine(*self._each_engine_args[number : number + 1])
        if self.redis:
            self._await_redis()
            self._report(f"Redis        {self.redis_url}")
        self._settings = self._make_settings()
        for number in range(apis):
            self._start_api(self._port if number == 0 else 0)
        if batch_workers:
            self._settings["CANVASS_QUEUES"] = "interactive"
        for _ in range(workers):
            self.add_worker()
        for _ in range(batch_workers):
            self.add_worker({"CANVASS_QUEUES": "batch"})
        for url in self.urls:
            self._await_api(url)

    def _open(self) -> Recipes:
        folder = (self._data or Path(tempfile.mkdtemp(prefix="canvass-"))).expanduser().resolve()
        logs = folder / "logs"
        for needed in (logs, folder / "redis"):
            needed.mkdir(parents=True, exist_ok=True)
        lock = redis_server.lock_folder(folder)
        return Recipes(logs=logs, guard=Guard(), lock=lock)

    def _start_redis(self) -> None:
        port = free_port()
        self.redis_url = f"redis://127.0.0.1:{port}/0"
        self.redis = self._recipes.redis(port, self.logs.with_name("redis"), self._redis_args)
        self.redis.start()

    def _start_engine(self, own: Sequence[str] = ()) -> Child:
        number = len(self.engines) + 1
        engine = self._recipes.engine(number, self._backend, (*self._engine_args, *own), self._extra)
        engine.start()
        self.engines.append(engine)
        return engine

    def _start_api(self, port: int) -> None:
        port = port or free_port(self._host)
        api = self._recipes.api(len(self.apis) + 1, self._settings, self._host, port)
        api.start()
        self.apis.append(api)
        self.urls.append(local_url(self._host, port))

    def _make_settings(self) -> dict[str, str]:
        """What API and workers are told, once the engines have said where and what they are."""
        found = {"CANVASS_TOKENIZER": self._await_tokenizer()} if self._tokenizer else {}
        for engine in self.engines:
            self._await_engine(engine)
        served = []
        for url in self.engine_urls:
            models = served_models(url)
            self._report(f"Engine       {url}  {', '.join(name for name, _ in models) or 'not there yet'}")
            served += models
        self.models = list(dict.fromkeys(name for name, _ in served))
        contexts = [context for _, context in served if context]
        if contexts:
            found["CANVASS_CONTEXT"] = str(min(contexts))
        addresses = {"CANVASS_REDIS_URL": self.redis_url, "CANVASS_ENGINES": ",".join(self.engine_urls)}
        return {**found, **self._extra, **addresses}

    def _await_redis(self) -> None:
        port = int(self.redis_url.rpartition(":")[2].partition("/")[0])
        self._until(lambda: redis_server.answers_ping(port) or None, "Redis did not answer")

    def _await_tokenizer(self) -> str:
        """The tokenizer's folder. The process ends by itself, and only then has printed all of it."""
        tokenizer = self._tokenizer
        assert tokenizer is not None
        status = self._until(lambda: tokenizer.returncode, "the tokenizer was not built")
        if status:
            tokenizer.require_alive()
        tokenizer.stop()
        return tokenizer.printed().strip()

    def _await_engine(self, engine: Child) -> None:
        """Wait for the engine's ready line, and keep to the port it found: a restart comes back there."""
        found = self._until(lambda: _READY.search(engine.printed()), f"{engine.name} was not ready")
        url = found.group(1).rstrip("/")
        if url not in self.engine_urls:
            self.engine_urls.append(url)
        engine.command = (*engine.command[:-1], url.rpartition(":")[2])

    def _await_api(self, url: str) -> None:
        since, told = time.monotonic(), False

        def ready() -> bool | None:
            nonlocal told
            able, said = readiness(url)
            if not able and not told and time.monotonic() - since > _PATIENCE_S:
                told = True
                self._report(f"Waiting for {url}/ready to be 200: {said}")
            return able or None

        self._until(ready, f"{url}/ready was not 200", lambda: f" (but: {readiness(url)[1]})")

    def _until(self, probed: Callable[[], T | None], what: str, why: Callable[[], str] = lambda: "") -> T:
        def checked() -> T | None:
            self.check()
            return probed()

        def late() -> str:
            tails = [f"{child.name}:\n{child.tail(5)}" for child in self.children if child.tail()]
            return "\n".join([f"{what}{why()} after {self._timeout_s} s. The logs end:", *tails])

        return wait_until(checked, timeout_s=self._timeout_s, what=late)
