"""Where a webhook may go. The hostile URLs are the ways around such a guard that are known."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from threading import Thread

import pytest

from workers.webhooks.connection import GuardedResolver, guarded_session
from workers.webhooks.courier import Answer, post
from workers.webhooks.guard import Allowed, Target, Unsafe, check_url, parse_allowed, why_not_public

NOTHING = Allowed()

GOOD = [
    "https://example.com",
    "https://example.com/",
    "https://EXAMPLE.com/hooks?a=1&b=%20",
    "HTTPS://hooks.example.co.uk/x",
    "https://example.com:443/x",
    "https://example.com:8443/x",
    "https://xn--bcher-kva.example/x",
    "https://under_score.example.com/x",
    "https://8.8.8.8/x",
    "https://[2606:4700:4700::1111]/x",
    "https://[2606:4700:4700:0:0:0:0:1111]:8443/x",
    "https://example.com/a@b",
    "https://example.com/?next=http://127.0.0.1/",
    "https://1password.com/x",
]

HOSTILE = [
    "",
    "https://",
    "https:///x",
    "https:example.com/x",
    "//example.com/x",
    "example.com/x",
    "http://example.com/x",
    "ftp://example.com/x",
    "file:///etc/passwd",
    "gopher://example.com/_x",
    "javascript:alert(1)",
    "data:text/plain,x",
    "https+unix://example.com/x",
    "https://user:password@example.com/x",
    "https://user@example.com/x",
    "https://example.com@127.0.0.1/x",
    "https://127.0.0.1@example.com/x",
    "https://@example.com/x",
    "https://example.com\\@127.0.0.1/x",
    "https://127.0.0.1\\.example.com/x",
    "https://example.com#@127.0.0.1/x",
    "https://example.com/x#fragment",
    "https://127.0.0.1/x",
    "https://127.8.9.1/x",
    "https://2130706433/x",
    "https://0x7f000001/x",
    "https://0x7f.0.0.1/x",
    "https://017700000001/x",
    "https://0177.0.0.1/x",
    "https://127.1/x",
    "https://127.0.1/x",
    "https://0/x",
    "https://0x/x",
    "https://1.2.3.4.5/x",
    "https://256.256.256.256/x",
    "https://example.1/x",
    "https://example.0x7f/x",
    "https://08.8.8.8/x",
    "https://127.0.0.1./x",
    "https://0.0.0.0/x",
    "https://10.0.0.1/x",
    "https://172.16.0.1/x",
    "https://172.31.255.255/x",
    "https://192.168.1.1/x",
    "https://100.64.0.1/x",
    "https://100.100.100.200/x",
    "https://169.254.1.1/x",
    "https://169.254.169.254/latest/meta-data/",
    "https://168.63.129.16/x",
    "https://192.0.0.192/x",
    "https://192.0.2.1/x",
    "https://198.18.0.1/x",
    "https://203.0.113.1/x",
    "https://224.0.0.1/x",
    "https://240.0.0.1/x",
    "https://255.255.255.255/x",
    "https://[::1]/x",
    "https://[::]/x",
    "https://[0:0:0:0:0:0:0:1]/x",
    "https://[::ffff:127.0.0.1]/x",
    "https://[::ffff:7f00:1]/x",
    "https://[::ffff:8.8.8.8]/x",
    "https://[::127.0.0.1]/x",
    "https://[::ffff:0:127.0.0.1]/x",
    "https://[64:ff9b::7f00:1]/x",
    "https://[64:ff9b::169.254.169.254]/x",
    "https://[64:ff9b:1::a00:1]/x",
    "https://[2002:7f00:1::]/x",
    "https://[2002:a9fe:a9fe::1]/x",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/x",
    "https://[2001:db8::1]/x",
    "https://[fc00::1]/x",
    "https://[fd00:ec2::254]/x",
    "https://[fe80::1]/x",
    "https://[fe80::1%25eth0]/x",
    "https://[fe80::1%eth0]/x",
    "https://[fec0::1]/x",
    "https://[ff02::1]/x",
    "https://[4000::1]/x",
    "https://[8.8.8.8]/x",
    "https://[::1/x",
    "https://::1/x",
    "https://[::1]example.com/x",
    "https://[v1.fe80]/x",
    "https://localhost/x",
    "https://LOCALHOST/x",
    "https://a.localhost/x",
    "https://printer.local/x",
    "https://metadata.google.internal/x",
    "https://metadata/x",
    "https://router.home.arpa/x",
    "https://example.com./x",
    "https://.example.com/x",
    "https://example..com/x",
    "https://-example.com/x",
    f"https://{'a' * 64}.com/x",
    f"https://{'a.' * 127}com/x",
    "https://exa mple.com/x",
    " https://example.com/x",
    "https://example.com/x ",
    "https://example.com/\r\nHost: 127.0.0.1",
    "https://exam\tple.com/x",
    "https://example.com\n/x",
    "https://example.com/\x00",
    "https://example.com%2f@127.0.0.1/x",
    "https://%31%32%37.0.0.1/x",
    "https://127。0。0。1/x",
    "https://①②⑦.0.0.1/x",
    "https://ⓛocalhost/x",
    "https://bücher.example/x",
    "https://example.com:80/x",
    "https://example.com:22/x",
    "https://example.com:6379/x",
    "https://example.com:0/x",
    "https://example.com:65536/x",
    "https://example.com:99999999/x",
    "https://example.com:/x",
    "https://example.com:+443/x",
    "https://example.com:443:443/x",
    "https://example.com:4 43/x",
]


@pytest.mark.parametrize("url", GOOD)
def test_a_public_url_passes(url: str) -> None:
    check_url(url, NOTHING)


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_url_is_refused_with_a_reason(url: str) -> None:
    with pytest.raises(Unsafe, match=r".{10}"):
        check_url(url, NOTHING)


def test_the_list_is_as_long_as_it_should_be() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) > 100


@pytest.mark.parametrize(
    ("allowed", "good", "bad"),
    [
        ("localhost", "http://localhost:9000/x", "http://127.0.0.1:9000/x"),
        ("localhost:9000", "http://localhost:9000/x", "http://localhost:9001/x"),
        ("127.0.0.1", "http://127.0.0.1:9000/x", "http://127.0.0.2:9000/x"),
        ("127.0.0.1:9000", "http://127.0.0.1:9000/x", "http://127.0.0.1:9001/x"),
        ("10.0.0.0/8", "https://10.1.2.3:1234/x", "https://11.1.2.3:1234/x"),
        ("[::1]:9000", "http://[::1]:9000/x", "http://[::1]:9001/x"),
        ("::1", "http://[::1]:9001/x", "http://[::2]/x"),
        ("Hooks.Example.com", "http://hooks.example.com/x", "http://example.com/x"),
        ("hooks", "https://hooks/x", "https://hooks.local/x"),
        ("10.0.0.0/8, localhost", "http://localhost/x", "http://10.0.0.1@localhost/x"),
        ("127.0.0.1", "http://127.0.0.1/x", "http://[::ffff:127.0.0.1]/x"),
        ("0.0.0.0/0", "http://127.0.0.1/x", "http://127.1/x"),
    ],
)
def test_the_allow_list_lets_through_exactly_what_it_says(allowed: str, good: str, bad: str) -> None:
    check_url(good, parse_allowed(allowed))
    with pytest.raises(Unsafe):
        check_url(bad, parse_allowed(allowed))


@pytest.mark.parametrize("text", ["http://localhost", "10.0.0.1/8", "a b", "host:port", "[::1", "host:70000"])
def test_an_allow_list_that_says_nothing_clear_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no host"):
        parse_allowed(text)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("169.254.169.254", "cloud metadata"),
        ("168.63.129.16", "cloud metadata"),
        ("fd00:ec2::254", "cloud metadata"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("64:ff9b::808:808", "NAT64"),
        ("2002:808:808::", "6to4"),
        ("2001::1", "Teredo"),
        ("8.8.8.8", None),
        ("2606:4700::1", None),
    ],
)
def test_an_address_is_called_what_it_is(address: str, why: str | None) -> None:
    assert why_not_public(ip_address(address)) == why


class Answers:
    """A resolver that gives one list of addresses after the other, and the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


TARGET = Target("https", "example.com", 443)


def resolved(answers: Answers, target: Target = TARGET, allowed: Allowed = NOTHING) -> list[str]:
    resolver = GuardedResolver(target, allowed, answers)
    return [found["host"] for found in asyncio.run(resolver.resolve(target.host, target.port))]


def test_public_addresses_are_the_ones_connected_to() -> None:
    assert resolved(Answers(["8.8.8.8", "2606:4700::1"])) == ["8.8.8.8", "2606:4700::1"]


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["2606:4700::1", "::ffff:10.0.0.1"], ["fe80::1%lo"]],
)
def test_one_address_that_is_not_public_refuses_the_host(addresses: list[str]) -> None:
    with pytest.raises(Unsafe, match="public"):
        resolved(Answers(addresses))


def test_a_resolver_that_changes_its_answer_is_asked_once() -> None:
    answers = Answers(["8.8.8.8"], ["127.0.0.1"])
    resolver = GuardedResolver(TARGET, NOTHING, answers)

    async def twice() -> list[str]:
        return [(await resolver.resolve("example.com", 443))[0]["host"] for _ in range(2)]

    assert asyncio.run(twice()) == ["8.8.8.8", "8.8.8.8"]
    assert answers.asked == 1


def test_only_the_host_that_was_checked_is_resolved() -> None:
    resolver = GuardedResolver(TARGET, NOTHING, Answers(["8.8.8.8"]))
    with pytest.raises(Unsafe):
        asyncio.run(resolver.resolve("other.example", 443))


def test_an_allowed_name_may_be_private_but_never_a_clouds_metadata() -> None:
    target, allowed = Target("http", "hooks", 80), parse_allowed("hooks")
    assert resolved(Answers(["10.0.0.1"]), target, allowed) == ["10.0.0.1"]
    for address in ("169.254.169.254", "fd00:ec2::254", "::ffff:10.0.0.1", "0.0.0.0"):
        with pytest.raises(Unsafe):
            resolved(Answers([address]), target, allowed)


class Receiver(BaseHTTPRequestHandler):
    """Answers what its path says: `/302?to=URL`, `/200`, and a long body on `/long`."""

    seen: list[tuple[str, str | None]]

    def do_POST(self) -> None:
        self.seen.append((self.path, self.headers["Host"]))
        self.rfile.read(int(self.headers["Content-Length"]))
        path, _, to = self.path.partition("?to=")
        self.send_response(200 if path == "/long" else int(path[1:]))
        if to:
            self.send_header("Location", to)
        body = b"x" * 5_000_000 if path == "/long" else b"hello"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.seen.append(("cut", None))

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def receiver() -> Iterator[tuple[int, list[tuple[str, str | None]]]]:
    seen: list[tuple[str, str | None]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Mine", (Receiver,), {"seen": seen}))
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port, seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def call(url: str, allow: str, answers: Answers | None = None, within_s: float = 5) -> Answer | str:
    resolve = answers or Answers(["127.0.0.1"])
    return asyncio.run(post(url, b"{}", {}, allowed=parse_allowed(allow), resolve=resolve, within_s=within_s))


def test_a_host_is_called_at_the_address_checked_and_by_its_own_name() -> None:
    with receiver() as (port, seen):
        answers = Answers(["127.0.0.1"], ["8.8.8.8"])
        answer = call(f"http://hooks.test:{port}/200", "hooks.test", answers)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.excerpt) == (200, "hello")
    assert seen == [("/200", f"hooks.test:{port}")]
    assert answers.asked == 1


def test_a_rebound_name_is_refused_at_the_next_attempt() -> None:
    answers = Answers(["127.0.0.1"], ["169.254.169.254"])
    with receiver() as (port, seen):
        url = f"http://hooks.test:{port}/200"
        assert isinstance(call(url, "hooks.test", answers), Answer)
        said = call(url, "hooks.test", answers)
    assert isinstance(said, str)
    assert "cloud metadata" in said
    assert len(seen) == 1


def test_a_name_that_is_not_allowed_does_not_reach_a_private_address() -> None:
    with receiver() as (_, seen):
        said = call("https://hooks.example.com/200", "", Answers(["8.8.8.8", "127.0.0.1"]))
    assert isinstance(said, str)
    assert "loopback" in said
    assert seen == []


def test_a_literal_address_asks_no_resolver_and_is_judged_all_the_same() -> None:
    answers = Answers(["8.8.8.8"])
    said = call("https://127.0.0.1/200", "", answers)
    assert isinstance(said, str)
    assert "loopback" in said
    assert answers.asked == 0


def test_no_socket_is_opened_to_an_address_that_was_not_checked() -> None:
    async def go_elsewhere(port: int) -> None:
        async with guarded_session(TARGET, NOTHING, Answers(["8.8.8.8"])) as session:
            await session.post(f"http://127.0.0.1:{port}/200")

    with receiver() as (port, seen), pytest.raises(Unsafe, match="loopback"):
        asyncio.run(go_elsewhere(port))
    assert seen == []


def test_a_redirect_to_a_private_address_is_not_followed() -> None:
    with receiver() as (port, seen):
        answer = call(f"http://hooks.test:{port}/302?to=http://127.0.0.1:{port}/200", "hooks.test")
    assert isinstance(answer, Answer)
    assert answer.status == 302
    assert len(seen) == 1


def test_little_of_a_long_response_is_read() -> None:
    with receiver() as (port, _):
        answer = call(f"http://hooks.test:{port}/long", "hooks.test")
    assert isinstance(answer, Answer)
    assert answer.excerpt == "x" * 500


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with receiver() as (port, _):
        assert isinstance(call(f"http://hooks.test:{port}/200", "hooks.test"), Answer)


def test_a_receiver_that_accepts_and_says_nothing_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert call(f"http://hooks.test:{port}/x", "hooks.test", within_s=0.3) == "no answer within 0.3 s"


def test_a_port_that_nobody_listens_on_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    said = call(f"http://hooks.test:{port}/x", "hooks.test")
    assert isinstance(said, str)
    assert said.startswith("no answer: ")
