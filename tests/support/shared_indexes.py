"""Indexes of several hosts in one catalogue, closed when a test ends, and what is found in them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Protocol, TypeVar

from msgspec.structs import replace

from blockpty.cluster.database import Database
from blockpty.cluster.hosts import Hosts
from blockpty.cluster.postgres_index import PostgresIndex
from blockpty.model.results import SearchResult
from blockpty.search.executor import find
from blockpty.search.index import Index
from blockpty.search.query import Query
from blockpty.search.records import Records
from tests.support.postgres_servers import Databases

EVERYTHING = Query("r", limit=1000, per_block=True)


class Closed(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closed)


class Keep:
    """What is handed to it is closed at the end."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(self, made: C) -> C:
        self._stack.callback(made.close)
        return made


def index_of(databases: Databases, home: str = "home-1", address: str = "", *, seconds: float = 60.0) -> PostgresIndex:
    shards = [Database(url) for url in databases.shards]
    return PostgresIndex(Database(databases.url), Hosts(home, "host", address, seconds=seconds), shards)


def found_in(records: Records, index: Index, query: Query = EVERYTHING) -> SearchResult:
    return find(records, index, replace(query, timeout_ms=30_000))
