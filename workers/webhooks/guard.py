"""Where a webhook may go: public addresses over https, and what an allow-list says beside them.

Pure: `check_url` judges a URL when it is handed in, `check_address` each address that its host resolves to
when it is called. The refused ranges are those of IANA's special-purpose registries (RFC 6890), the clouds'
metadata addresses, and every IPv6 range that carries an IPv4 address inside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PORTS = {"https": 443, "http": 80}
PUBLIC_PORTS = (443, 8443)

_AUTHORITY = re.compile(r"(?:\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<name>[^\[\]:@%]+))(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

_LOCAL_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "onion", "invalid")
"""Names that never stand for a public host (RFC 6761, RFC 6762, RFC 8375, and customs)."""

_INTERNAL = frozenset({"private", "loopback", "carrier-grade NAT"})
"""What a name in the allow-list may resolve to. Metadata must be allowed by its address."""

_NOT_PUBLIC: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("168.63.129.16/32", "cloud metadata"),
        ("169.254.169.254/32", "cloud metadata"),
        ("169.254.170.2/32", "cloud metadata"),
        ("100.100.100.200/32", "cloud metadata"),
        ("192.0.0.192/32", "cloud metadata"),
        ("fd00:ec2::/32", "cloud metadata"),
        ("fd20:ce::254/128", "cloud metadata"),
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved"),
        ("192.88.99.0/24", "6to4"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved"),
        ("198.51.100.0/24", "reserved"),
        ("203.0.113.0/24", "reserved"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("::/96", "IPv4-compatible"),
        ("::ffff:0:0:0/96", "IPv4-translated"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "reserved"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")


class Unsafe(Exception):
    """A webhook may not go there. The message says why, and what would be right."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL calls: `host` is a name in lower case or an IP address, without brackets."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Allowed:
    """The allow-list: names and networks, each for one port or (None) for all."""

    names: frozenset[tuple[str, int | None]] = frozenset()
    networks: frozenset[tuple[Network, int | None]] = frozenset()

    def name(self, host: str, port: int) -> bool:
        """Whether a name is listed for a port."""
        return not self.names.isdisjoint({(host, None), (host, port)})

    def address(self, address: Address, port: int) -> bool:
        """Whether an address is listed for a port."""
        return any(address in network and only in (None, port) for network, only in self.networks)

    def host(self, host: str, port: int) -> bool:
        """Whether the host of a URL is listed for a port."""
        literal = _literal(host)
        return self.name(host, port) if literal is None else self.address(literal, port)


@lru_cache(maxsize=16)
def parse_allowed(text: str) -> Allowed:
    """The allow-list that a setting says: `host`, `host:port`, an address or a CIDR, comma-separated.

    Raises ValueError for anything else.
    """
    names: set[tuple[str, int | None]] = set()
    networks: set[tuple[Network, int | None]] = set()
    for entry in filter(None, (part.strip().lower() for part in text.split(","))):
        try:
            networks.add((ip_network(entry), None))
            continue
        except ValueError as error:
            found = _AUTHORITY.fullmatch(entry)
            if found is None or int(found["port"] or 0) > 65535:
                raise ValueError(f"{entry!r} is no host, host:port or CIDR") from error
        port = None if found["port"] is None else int(found["port"])
        literal = _literal(found["ipv6"] or found["name"])
        if literal is not None:
            networks.add((ip_network(literal), port))
        elif found["ipv6"] is None and _NAME.fullmatch(found["name"]):
            names.add((found["name"], port))
        else:
            raise ValueError(f"{entry!r} is no host, host:port or CIDR")
    return Allowed(frozenset(names), frozenset(networks))


def check_url(url: str, allowed: Allowed) -> None:
    """Let a webhook's URL pass, or raise Unsafe. Resolves nothing."""
    target_of(url, allowed)


def target_of(url: str, allowed: Allowed) -> Target:
    """What a URL calls. Raises Unsafe when it may not be called, or can be read in two ways."""
    if any(not "!" <= sign <= "~" for sign in url):
        raise Unsafe(
            "a URL has no spaces, control or non-ASCII characters; write a host as xn--..., a path as %.."
        )
    if "\\" in url or "#" in url:
        raise Unsafe("a webhook's URL has no backslash and no fragment")
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in PORTS:
        raise Unsafe("a webhook's URL begins with https://")
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    if "@" in authority:
        raise Unsafe("a webhook's URL carries no user name or password; check its signature instead")
    if authority != _authority_again(url):
        raise Unsafe("the URL cannot be read in one way only")
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise Unsafe("the URL has no host that can be called")
    host = (found["ipv6"] or found["name"]).lower()
    port = PORTS[scheme] if found["port"] is None else int(found["port"])
    if not 0 < port <= 65535:
        raise Unsafe(f"there is no port {port}")
    _check_host(host, in_brackets=found["ipv6"] is not None)
    target = Target(scheme, host, port)
    if not allowed.host(host, port):
        _check_public(target, allowed)
    return target


def check_address(address: Address, target: Target, allowed: Allowed) -> None:
    """Let an address that a target resolved to pass, or raise Unsafe."""
    if allowed.address(address, target.port):
        return
    why = why_not_public(address)
    if why is None or (why in _INTERNAL and allowed.name(target.host, target.port)):
        return
    named = target.host if str(address) == target.host else f"{target.host}, at {address},"
    raise Unsafe(f"{named} is {why}: webhooks go to public addresses")


def why_not_public(address: Address) -> str | None:
    """What an address is instead of public, None for one that is."""
    for network, why in _NOT_PUBLIC:
        if address in network:
            return why
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "reserved"
    return None


def _check_host(host: str, *, in_brackets: bool) -> None:
    literal = _literal(host)
    if in_brackets and not isinstance(literal, IPv6Address):
        raise Unsafe(f"[{host}] is no IPv6 address")
    if literal is not None:
        return
    if host.endswith("."):
        raise Unsafe("write the host without a dot at its end")
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise Unsafe(f"{host!r} is no host name")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise Unsafe(f"{host!r} is no IPv4 address in its usual form: four decimal numbers, no leading zeros")


def _check_public(target: Target, allowed: Allowed) -> None:
    if target.scheme != "https":
        raise Unsafe("a webhook's URL begins with https:// (CANVASS_WEBHOOK_ALLOW lists exceptions)")
    if target.port not in PUBLIC_PORTS:
        ports = " and ".join(map(str, PUBLIC_PORTS))
        raise Unsafe(f"webhooks go to the ports {ports} (CANVASS_WEBHOOK_ALLOW lists exceptions)")
    literal = _literal(target.host)
    if literal is not None:
        check_address(literal, target, allowed)
        return
    if "." not in target.host or any(f".{target.host}".endswith(f".{name}") for name in _LOCAL_NAMES):
        raise Unsafe(f"{target.host!r} is no public host name (CANVASS_WEBHOOK_ALLOW lists exceptions)")


def _authority_again(url: str) -> str | None:
    """The authority as another parser reads it, None when that one does not take the URL."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return None


def _literal(host: str) -> Address | None:
    """The IP address that a host is, if it is one. Zones (`fe80::1%eth0`) are no part of one here."""
    try:
        return None if "%" in host else ip_address(host)
    except ValueError:
        return None
