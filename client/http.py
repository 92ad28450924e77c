"""The few HTTP calls of the command: one decision, and the questions a starting stack asks."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypedDict

import httpx2
import orjson

from client.errors import BadKey, KeyRefused, ServerRefused, ServerUnreachable, TooMuch

DEFAULT_URL = "http://127.0.0.1:8011"
OK = 200
UNAUTHORIZED, FORBIDDEN, TOO_MANY_REQUESTS = 401, 403, 429
_PROBE_TIMEOUT_S = 2.0
# Longer than any sync limit that a server is likely to have: the server says when it gives up.
_DECISION_TIMEOUT = httpx2.Timeout(900.0, connect=5.0)
# A stream without news has a comment every 15 s.
_STREAM_TIMEOUT = httpx2.Timeout(45.0, connect=5.0)
_ERROR_TEXT = 300


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response: status, body, headers with lower-case names."""

    status: int
    content: bytes
    headers: Mapping[str, str]


def decide(url: str, body: dict[str, Any], key: str | None = None) -> bytes:
    """Post a decision; the response body. Raises `ServerUnreachable` or `ServerRefused`."""
    response = post(url, "/v1/systemone", body, bearer(key))
    if response.status != OK:
        raise refused(response)
    return response.content


def bearer(key: str | None) -> dict[str, str]:
    """The header that carries a key, if there is one. Raises `BadKey`."""
    if key is None:
        return {}
    if not key or not all("!" <= sign <= "~" for sign in key):
        raise BadKey(BadKey.__doc__)
    return {"authorization": f"Bearer {key}"}


def refused(response: Response) -> ServerRefused:
    """What a response to a decision or about a job says that is not what was asked for."""
    status, message = response.status, refusal(response.status, response.content)
    if status in (UNAUTHORIZED, FORBIDDEN):
        return KeyRefused(status, message)
    if status == TOO_MANY_REQUESTS:
        return TooMuch(status, message, response.headers.get("retry-after", ""))
    return ServerRefused(status, message)


def post(url: str, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Post JSON; the response, whatever its status. Raises `ServerUnreachable`."""
    headers = {"content-type": "application/json", **(headers or {})}
    return send("POST", url, path, headers, orjson.dumps(body))


def send(
    method: str, url: str, path: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
) -> Response:
    """The response to a request, whatever its status. Raises `ServerUnreachable`."""
    try:
        with httpx2.Client(timeout=_DECISION_TIMEOUT, **connection(url)) as client:
            response = client.request(method, f"{url.rstrip('/')}{path}", content=content, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ServerUnreachable(url, str(error) or type(error).__name__) from error
    return Response(response.status_code, response.content, dict(response.headers))


def lines(url: str, path: str, headers: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """The lines of a response that comes bit by bit: line feeds alone part them, for U+2028 and its like may
    stand in JSON. Only whole lines are given. Raises `ServerUnreachable` or `ServerRefused`.
    """
    rest = b""
    try:
        with (
            httpx2.Client(timeout=_STREAM_TIMEOUT, **connection(url)) as client,
            client.stream("GET", f"{url.rstrip('/')}{path}", headers=headers) as response,
        ):
            if response.status_code != OK:
                raise refused(Response(response.status_code, response.read(), dict(response.headers)))
            for block in response.iter_bytes():
                *whole, rest = (rest + block).split(b"\n")
                yield from whole
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ServerUnreachable(url, str(error) or type(error).__name__) from error


def upload(
    url: str, path: str, headers: Mapping[str, str], request: bytes, name: str, file: BinaryIO
) -> Response:
    """Post a form of a JSON `request` and a `file` that is read as it is sent. Raises `ServerUnreachable`."""
    parts: dict[str, tuple[str | None, bytes | BinaryIO]] = {"request": (None, request), "file": (name, file)}
    try:
        with httpx2.Client(timeout=_DECISION_TIMEOUT, **connection(url)) as client:
            response = client.post(f"{url.rstrip('/')}{path}", files=parts, headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ServerUnreachable(url, str(error) or type(error).__name__) from error
    return Response(response.status_code, response.content, dict(response.headers))


def probe(url: str) -> tuple[int, bytes] | None:
    """Status and body of a GET on this machine or network; None when nothing answers."""
    try:
        response = httpx2.get(url, timeout=_PROBE_TIMEOUT_S, **connection(url))
    except httpx2.HTTPError:
        return None
    return response.status_code, response.content


def served_models(url: str) -> list[tuple[str, int | None]]:
    """Name and context length in tokens of each model that an engine serves; none while it is away."""
    answer = probe(f"{url}/v1/models")
    if answer is None or answer[0] != OK:
        return []
    try:
        models = orjson.loads(answer[1])["data"]
        return [(str(model["id"]), model.get("max_model_len")) for model in models]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        # The canary of the pool, not this look, decides whether a server is an engine.
        return []


def readiness(url: str) -> tuple[bool, str]:
    """Whether an API can serve a decision now, and what it says about it."""
    answer = probe(f"{url}/ready")
    if answer is None:
        return False, "no answer"
    return answer[0] == OK, answer[1].decode("utf-8", errors="replace")[:_ERROR_TEXT]


def is_url_list(engines: str) -> bool:
    """Whether `engines` names servers, rather than a backend of the stand-in."""
    return engines.startswith(("http://", "https://"))


def refusal(status: int, content: bytes) -> str:
    """What an error response says: status, then its messages, each with the path of what is wrong.

    Reads System One's two shapes, `{"detail": {"error_type", "message"}}` and the list of a 422, and
    shows the start of anything else.
    """
    try:
        detail = orjson.loads(content)["detail"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = content.decode("utf-8", errors="replace").strip()
        return f"{status}: {text[:_ERROR_TEXT] or 'the server sent no message'}"
    if isinstance(detail, dict):
        return f"{status} {detail.get('error_type', 'error')}: {detail.get('message', '')}"
    if not isinstance(detail, list):
        return f"{status}: {detail}"
    return "\n".join([f"{status}: the server refused the request", *(f"  {_problem(one)}" for one in detail)])


def object_of(response: Response, expected: int) -> dict[str, Any]:
    """The JSON object of a response. Raises `ServerRefused` for another status, or another body."""
    if response.status != expected:
        raise refused(response)
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError as error:
        raise ServerRefused(response.status, f"{response.status} with a body that is no JSON") from error
    if not isinstance(body, dict):
        raise ServerRefused(response.status, f"{response.status} with a body that is no JSON object")
    return body


def _problem(problem: Any) -> str:
    if not isinstance(problem, dict):
        return str(problem)
    return f"{path_of(problem) or 'body'}: {problem.get('msg', 'is wrong')}"


def path_of(problem: Mapping[str, Any]) -> str:
    """The path in the body of one entry of a 422, its parts with dots between; empty for the whole body."""
    path = [str(part) for part in problem.get("loc", ())]
    return ".".join(path[1:] if path[:1] == ["body"] else path)


class Connection(TypedDict):
    """How a client of httpx2 connects."""

    trust_env: bool
    verify: bool


def connection(url: str) -> Connection:
    """How to connect to a URL: what a client of httpx2 takes."""
    # A call to this machine must not go through a proxy of the environment, and loading certificates
    # for a plain connection would cost 20 ms of CPU, which a start that polls cannot spare.
    return {"trust_env": not is_loopback(url), "verify": not url.startswith("http://")}


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
