"""The made-up customers of the example, and the stores that hold them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import duckdb

from examples.discount_agent.stores import COLD, HOT

# id, name, plan, days since the account was opened, open bills in cents
_ACCOUNTS = (
    (17, "Ada Marsh", "team", 1300, 0),
    (23, "Ben Okoye", "basic", 90, 0),
    (42, "Chiara Lund", "business", 2600, 19900),
)

# number, customer, days since it was placed, cents, status
_ORDERS = (
    ("A-1001", 17, 1200, 58800, "delivered"),
    ("A-1042", 17, 700, 58800, "delivered"),
    ("A-1077", 17, 330, 58800, "delivered"),
    ("A-1093", 17, 40, 12000, "on its way"),
    ("B-2001", 23, 90, 10800, "delivered"),
    ("C-3001", 42, 2500, 238800, "delivered"),
    ("C-3008", 42, 200, 238800, "delivered"),
)


def seed(folder: Path, today: date) -> None:
    """Make both stores in a folder, unless they are there. Their dates are as far back as today is."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / HOT).exists():
        _seed_hot(folder / HOT, today)
    if not (folder / COLD).exists():
        _seed_cold(folder / COLD, today)


def _seed_hot(file: Path, today: date) -> None:
    rows = [
        (id, name, plan, (today - timedelta(days=days)).isoformat(), unpaid)
        for id, name, plan, days, unpaid in _ACCOUNTS
    ]
    with closing(sqlite3.connect(file)) as hot, hot:
        hot.execute(
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL, plan TEXT NOT NULL,"
            " since TEXT NOT NULL, unpaid_cents INTEGER NOT NULL)"
        )
        hot.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?, ?)", rows)


def _seed_cold(file: Path, today: date) -> None:
    rows = [
        (number, customer, today - timedelta(days=days), cents, status)
        for number, customer, days, cents, status in _ORDERS
    ]
    with duckdb.connect(file) as cold:
        cold.execute(
            "CREATE TABLE orders (number TEXT PRIMARY KEY, customer INTEGER NOT NULL, day DATE NOT NULL,"
            " cents INTEGER NOT NULL, status TEXT NOT NULL)"
        )
        cold.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
