"""What is known of a customer: accounts in a hot store (SQLite), old orders in a cold one (DuckDB)."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

HOT, COLD = "hot.sqlite", "cold.duckdb"

_YEAR = timedelta(days=365)

_ACCOUNT = "SELECT name, plan, since, unpaid_cents FROM accounts WHERE id = ?"
_HISTORY = "SELECT count(*), coalesce(sum(cents), 0) FROM orders WHERE customer = ? AND day > ?"
_ORDER = "SELECT number, day, cents, status FROM orders WHERE customer = ? AND number = ?"


class UnknownCustomer(LookupError):
    """There is no account of that number."""

    def __init__(self, id: int) -> None:
        super().__init__(f"There is no customer {id}.")
        self.id = id


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer as the pricing sees one: whole years with us, orders of the last 365 days, euros."""

    id: int
    name: str
    plan: str
    years: int
    unpaid: Decimal
    orders: int
    spent: Decimal


@dataclass(frozen=True, slots=True)
class Order:
    """An order that was placed; its total in euros."""

    number: str
    day: date
    total: Decimal
    status: str


class Stores:
    """Both stores of a folder, for reading. Close it, or use it in a `with`."""

    def __init__(self, folder: Path) -> None:
        self._hot = sqlite3.connect(f"{(folder / HOT).resolve().as_uri()}?mode=ro", uri=True)
        self._cold = duckdb.connect(folder / COLD, read_only=True)

    def customer(self, id: int, today: date) -> Customer:
        """A customer, from both stores. Raises `UnknownCustomer`."""
        account = self._hot.execute(_ACCOUNT, (id,)).fetchone()
        if account is None:
            raise UnknownCustomer(id)
        name, plan, since, unpaid = account
        orders, spent = self._row(_HISTORY, id, today - _YEAR) or (0, 0)
        years = (today - date.fromisoformat(since)) // _YEAR
        return Customer(id, name, plan, years, _euros(unpaid), orders, _euros(spent))

    def order(self, customer: int, number: str) -> Order | None:
        """An order of this customer's; None where there is none of that number, or it is another's."""
        found = self._row(_ORDER, customer, number)
        return Order(found[0], found[1], _euros(found[2]), found[3]) if found else None

    def close(self) -> None:
        """Close both."""
        self._hot.close()
        self._cold.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _row(self, query: str, *parameters: object) -> tuple[Any, ...] | None:
        return self._cold.execute(query, parameters).fetchone()


def _euros(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)
