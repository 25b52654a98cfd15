"""Connections of one database: whole ones are kept, and work is done again when its connection was lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from blockpty.cluster.database import MAX_IDLE, Database
from blockpty.errors import BadRequest

_IDLE, _BUSY = psycopg.pq.TransactionStatus.IDLE, psycopg.pq.TransactionStatus.INTRANS


class FakeConnection:
    def __init__(self) -> None:
        self.closed = False
        self.info = SimpleNamespace(transaction_status=_IDLE)

    def close(self) -> None:
        self.closed = True


class FakeDatabase(Database):
    """It connects to nothing, and says what it has opened."""

    def __init__(self) -> None:
        super().__init__("postgresql://someone:secret@there/some")
        self.opened: list[FakeConnection] = []

    def connect(self) -> Any:
        self.opened.append(FakeConnection())
        return self.opened[-1]


def test_no_url() -> None:
    with pytest.raises(BadRequest, match="URL"):
        Database("a database")


def test_its_name_tells_no_password() -> None:
    assert FakeDatabase().name == "there/some"


def test_a_connection_is_kept_unless_it_is_broken_or_inside_a_transaction() -> None:
    database = FakeDatabase()
    with database.connection() as first:
        pass
    with database.connection() as again:
        assert again is first
        again.info.transaction_status = _BUSY
    assert first.closed
    with database.connection() as second:
        second.close()
    with database.connection() as third:
        assert third not in (first, second)
        database.close()
    assert third.closed


def test_only_so_many_are_kept() -> None:
    database = FakeDatabase()
    lent = [database.connection() for _ in range(MAX_IDLE + 1)]
    for one in lent:
        one.__enter__()
    for one in lent:
        one.__exit__(None, None, None)
    assert [one.closed for one in database.opened] == [False] * MAX_IDLE + [True]


def test_work_whose_connection_was_lost_is_done_again_on_a_fresh_one() -> None:
    database = FakeDatabase()
    with database.connection(), database.connection():
        pass
    first, second = database.opened
    tried: list[object] = []

    def work(connection: Any) -> str:
        tried.append(connection)
        if len(tried) == 1:
            connection.close()
            raise psycopg.OperationalError("lost")
        return "done"

    assert database.run(work) == "done"
    # What was kept is as old as the connection that was lost.
    assert first.closed and second.closed and tried[1] is database.opened[2]


def test_work_that_fails_on_a_whole_connection_is_not_done_again() -> None:
    database = FakeDatabase()

    def work(_connection: Any) -> None:
        raise psycopg.OperationalError("no")

    with pytest.raises(psycopg.OperationalError):
        database.run(work)
    assert len(database.opened) == 1
