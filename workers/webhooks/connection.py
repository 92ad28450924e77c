"""Connections to receivers: a host is resolved once, every address judged, and only those are called.

One session per attempt, with a connector of its own: nothing is resolved again between the check and the
call, no connection is met again by another attempt, and a resolver that changes its answer changes nothing.
The socket itself is made by a function that lets checked addresses through only, so that also a host
written as an address, which asks no resolver, is judged.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv6Address, ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from workers.webhooks.guard import Address, Allowed, Target, Unsafe, check_address

RESOLVERS = 8
"""Threads that ask the system's resolver. They are the webhooks' own: a name server that does not answer
must not hold up those who look for an engine."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Addresses of a host for a port, as text. Raises OSError when there are none."""


class SystemResolver:
    """Asks the system, in threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="webhook-resolver")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Addresses of a host. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _getaddrinfo, host, port)
        return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))

    def close(self) -> None:
        """Take no more questions. Those under way end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class GuardedResolver(AbstractResolver):
    """Resolves the host of one target, once, and refuses it when any of its addresses may not be called."""

    def __init__(self, target: Target, allowed: Allowed, resolve: Resolve) -> None:
        self._target = target
        self._allowed = allowed
        self._resolve = resolve
        self._found: list[Address] | None = None

    @property
    def found(self) -> Sequence[Address]:
        """The addresses that were judged and let through."""
        return self._found or ()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses to connect to. Raises Unsafe, or OSError when there are none."""
        if (host, port) != (self._target.host, self._target.port):
            raise Unsafe(f"{host}:{port} is not what was checked")
        if self._found is None:
            addresses = [ip_address(text) for text in await self._resolve(host, port)]
            for address in addresses:
                check_address(address, self._target, self._allowed)
            self._found = addresses
        if not self._found:
            raise OSError(f"{host} has no address")
        return [
            {
                "hostname": host,
                "host": str(address),
                "port": port,
                "family": socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            }
            for address in self._found
        ]

    async def close(self) -> None:
        """Nothing is held open."""


def guarded_session(target: Target, allowed: Allowed, resolve: Resolve) -> aiohttp.ClientSession:
    """A session for one request to one target. Its requests raise Unsafe for what may not be called.

    aiohttp sends the host's name in `Host` and in TLS, and checks the certificate against it. No redirect
    is followed unless a request says so; nothing of the environment (proxies, .netrc) is used.
    """
    resolver = GuardedResolver(target, allowed, resolve)

    def open_socket(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, sockaddr = info
        address = ip_address(sockaddr[0])
        if address not in resolver.found:
            check_address(address, target, allowed)
        return socket.socket(family, kind, protocol)

    connector = aiohttp.TCPConnector(
        resolver=resolver, use_dns_cache=False, force_close=True, limit=1, socket_factory=open_socket
    )
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
    )


def _getaddrinfo(host: str, port: int) -> list[tuple[Any, ...]]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
