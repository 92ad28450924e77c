"""Pages: a folder's files by name, nothing outside of it, and no route of the API's."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from api.__main__ import settings_of
from client.stack import Stack


@pytest.fixture(scope="module")
def site(script: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    top = tmp_path_factory.mktemp("site")
    folder = top / "pages"
    (folder / "deep").mkdir(parents=True)
    (top / "outside.html").write_text("SECRET")
    for name, text in {
        "index.html": "home",
        "about.html": "über",
        "two words.html": "spaces",
        "health.html": "SHADOW",
        "metrics.html": "SHADOW",
        "v1.html": "one",
        ".hidden.html": "SECRET",
        "notes.txt": "SECRET",
        "deep/page.html": "SECRET",
    }.items():
        (folder / name).write_text(text)
    (folder / "dir.html").mkdir()
    for name, target in {
        "inner": folder / "about.html",
        "climbs": top / "outside.html",
        "reveals": folder / ".hidden.html",
        "texts": folder / "notes.txt",
        "lost": folder / "nowhere.html",
    }.items():
        (folder / f"{name}.html").symlink_to(target)
    for name, other in {"circle": "round", "round": "circle", "itself": "itself"}.items():
        (folder / f"{name}.html").symlink_to(folder / f"{other}.html")
    with Stack(engines=script, env={"CANVASS_PAGES": str(folder)}) as running:
        yield running


def get(site: Stack, path: str) -> tuple[int, str, str]:
    """Status, media type and text of what a path gets, sent as it is written."""
    address = urlsplit(site.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port or 0, timeout=30)
    connection.request("GET", path)
    response = connection.getresponse()
    found = (response.status, response.headers["content-type"], response.read().decode())
    connection.close()
    return found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "home"),
        ("/index", "home"),
        ("/about", "über"),
        ("/two%20words", "spaces"),
        ("/inner", "über"),
        ("/v1", "one"),
    ],
)
def test_a_page_is_served_by_its_name(site: Stack, path: str, text: str) -> None:
    assert get(site, path) == (200, "text/html; charset=utf-8", text)


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/about.html",
        "/notes",
        "/notes.txt",
        "/.hidden",
        "/%2ehidden",
        "/../outside",
        "/..%2foutside",
        "/%2e%2e/outside",
        "/..%5coutside",
        "/..",
        "//outside",
        "/deep/page",
        "/deep%2fpage",
        "/dir",
        "/climbs",
        "/reveals",
        "/texts",
        "/lost",
        "/circle",
        "/itself",
        "/about%00",
        "/%ff",
        "/" + "x" * 5000,
    ],
)
def test_nothing_else_is_served(site: Stack, path: str) -> None:
    status, _, text = get(site, path)
    assert status == 404
    assert "SECRET" not in text


@pytest.mark.parametrize("path", ["/", "/about", "/two%20words"])
def test_a_page_may_be_asked_for_its_head(site: Stack, path: str) -> None:
    head, whole = httpx2.head(site.url + path), httpx2.get(site.url + path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert httpx2.head(f"{site.url}/nowhere").status_code == 404


def test_no_route_of_the_api_is_shadowed(site: Stack) -> None:
    assert httpx2.get(f"{site.url}/health").json() != "SHADOW"
    assert "canvass_http_requests" in httpx2.get(f"{site.url}/metrics").text
    assert httpx2.head(f"{site.url}/health").status_code == 405
    assert httpx2.head(f"{site.url}/metrics").status_code == 405
    assert httpx2.post(f"{site.url}/about").status_code == 405
    assert httpx2.get(f"{site.url}/v1/models").json()["object"] == "list"
    assert httpx2.get(f"{site.url}/v1/nothing").headers["content-type"] == "text/plain; charset=utf-8"


def test_there_are_no_pages_unless_a_folder_is_named(stack: Stack) -> None:
    assert [httpx2.get(f"{stack.url}{path}").status_code for path in ("/", "/index")] == [404, 404]


def test_the_folder_may_be_an_argument_and_must_be_there(tmp_path: Path) -> None:
    assert settings_of([]).pages is None
    assert settings_of(["--pages", str(tmp_path)]).pages == tmp_path
    with pytest.raises(ValueError, match="directory"):
        settings_of(["--pages", str(tmp_path / "nowhere")])
