"""`canvass keys`: API keys of a server, made, listed and revoked over HTTP with its admin key."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table

from client.cells import cell, printable
from client.http import DEFAULT_URL, OK, bearer, object_of, post, send

CREATED = 201
_PATH = "/v1/keys"
_WIDEST = 1000

app = typer.Typer(no_args_is_help=True, help="API keys: who may ask a server, and how much.")

Url = Annotated[str, typer.Option(envvar="CANVASS_URL", help="Base URL of a Canvass API.")]
AdminKey = Annotated[
    str,
    typer.Option(
        envvar="CANVASS_ADMIN_KEY",
        help="The server's admin key: what its own CANVASS_ADMIN_KEY says. Better in the environment.",
    ),
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    admin_key: AdminKey,
    url: Url = DEFAULT_URL,
    rate_per_minute: Annotated[int, typer.Option(min=0, help="Decisions a minute; 0: no limit.")] = 0,
    most_open: Annotated[int, typer.Option(min=0, help="Decisions open at once; 0: no limit.")] = 0,
) -> None:
    """Make a key, and print it with its webhook secret: this once.

    The first key closes an open server.
    """
    asked = {"name": name, "rate_per_minute": rate_per_minute, "most_open": most_open}
    made = object_of(post(url, _PATH, asked, bearer(admin_key)), CREATED)
    for label, field in (("Key", "key"), ("Webhook secret", "webhook_secret"), ("Id", "id")):
        typer.echo(f"{label:<14} {printable(str(made.get(field)))}")
    typer.echo("Keep the first two: the server does not show them again.", err=True)


@app.command("list")
def list_keys(admin_key: AdminKey, url: Url = DEFAULT_URL) -> None:
    """List the keys, newest first, without their secrets."""
    keys = object_of(send("GET", url, _PATH, bearer(admin_key)), OK).get("data", [])
    table = Table("id", "name", "begins", "made", "a minute", "open at once", "revoked", box=None)
    for key in keys:
        table.add_row(*map(cell, _row(key)))
    # As wide as it needs to be: an id that was cut could not be given to `revoke`.
    width = Console(width=_WIDEST).measure(table).maximum
    Console(width=width, highlight=False).print(table)


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="key_..., as `canvass keys list` shows it.")],
    admin_key: AdminKey,
    url: Url = DEFAULT_URL,
) -> None:
    """Revoke a key, for good: within two seconds every request with it is refused."""
    key = object_of(send("DELETE", url, f"{_PATH}/{quote(id, safe='')}", bearer(admin_key)), OK)
    typer.echo(printable(f"{key.get('id')} ({key.get('name')}) is revoked since {key.get('revoked_at')}."))


def _row(key: dict[str, Any]) -> list[str]:
    limits = [str(key.get(field) or "-") for field in ("rate_per_minute", "most_open")]
    shown = [key.get("id"), key.get("name"), f"{key.get('prefix')}...", _second(key.get("created_at"))]
    return [str(value) for value in (*shown, *limits, _second(key.get("revoked_at")))]


def _second(time: str | None) -> str:
    """A time of the server's to the second, as people read it."""
    return "-" if time is None else f"{time[:10]} {time[11:19]} UTC"
