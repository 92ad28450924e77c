"""How each kind of child is started: its command, its environment, its logs, its time to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from client.process import Child, Guard, child_environment, module_command
from client.redis_server import redis_command

# Seconds between SIGTERM and SIGKILL. A worker ends its running reads first, Redis writes its file out.
_GRACE_S = {"api": 5.0, "worker": 10.0, "engine": 3.0, "redis": 10.0, "tokenizer": 1.0}
# These print what others wait for, so their standard output is kept apart from what they log.
_PRINTING = ("engine", "tokenizer")


@dataclass(frozen=True)
class Recipes:
    """Makes the children of one stack, none of them started yet.

    `logs` takes one file per child; `lock` is the descriptor of the data folder's lock, which Redis holds
    too.
    """

    logs: Path
    guard: Guard
    lock: int

    def redis(self, port: int, folder: Path, arguments: Sequence[str] = ()) -> Child:
        """A Redis on the loopback address with its data in `folder`."""
        return self._child("redis", [*redis_command(port, folder), *arguments], pass_fds=(self.lock,))

    def tokenizer(self) -> Child:
        """A process that builds the stand-in's tokenizer folder where it is missing, and prints its path."""
        return self._child("tokenizer", module_command("engine.tokenizer"))

    def engine(self, number: int, backend: str, arguments: Sequence[str], env: Mapping[str, str]) -> Child:
        """A stand-in engine on a free port, which ends its command; it prints a line with its URL."""
        command = module_command("engine", "--backend", backend, *arguments, "--port", "0")
        return self._child(f"engine-{number}", command, env)

    def worker(self, number: int, settings: Mapping[str, str]) -> Child:
        """A worker process."""
        return self._child(f"worker-{number}", module_command("workers"), settings)

    def api(self, number: int, settings: Mapping[str, str], host: str, port: int) -> Child:
        """An API process that listens on `host` and `port`."""
        address = {"CANVASS_HOST": host, "CANVASS_PORT": str(port)}
        return self._child(f"api-{number}", module_command("api"), {**settings, **address})

    def _child(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Child:
        kind = name.partition("-")[0]
        return Child(
            name,
            command,
            env=child_environment(env or {}),
            log=self.logs / f"{name}.log",
            output=self.logs / f"{name}.out" if kind in _PRINTING else None,
            guard=self.guard,
            grace_s=_GRACE_S[kind],
            pass_fds=pass_fds,
        )
