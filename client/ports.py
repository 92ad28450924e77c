"""TCP ports on this machine."""

from __future__ import annotations

import socket

from client.errors import PortTaken


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nothing listens on now; another process may still take it before it is used."""
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def require_free(host: str, port: int) -> None:
    """Raise `PortTaken` when the port cannot be listened on."""
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        # A server restarted within a minute finds its old connections in TIME_WAIT, and may listen.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortTaken(
                f"Cannot listen on {host}:{port} ({error.strerror}). {PortTaken.__doc__}"
            ) from error


def local_url(host: str, port: int) -> str:
    """The URL under which a server that listens on `host` is reached from this machine."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
