"""Calls to a part of the tables: tried again on a fresh connection, given up from another thread, bytes by need."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any, Self

import psycopg
import pytest

from blockpty.cluster.database import Connection
from blockpty.cluster.partitions import DatabaseCall, Learnt, Newest, Stored, fetched
from blockpty.search.index import ChunkKey
from blockpty.search.planner import plan
from blockpty.search.query import Query


class ScriptedConnection:
    """It answers each statement with the next rows, and keeps what was asked."""

    def __init__(self, *answers: list[tuple[Any, ...]], sock: socket.socket | None = None) -> None:
        self.asked: list[tuple[bytes, dict[str, Any]]] = []
        self.closed = False
        self._answers = list(answers)
        self._sock = sock

    def execute(self, statement: bytes, words: dict[str, Any], *, binary: bool) -> ScriptedConnection:
        assert binary
        self.asked.append((statement, words))
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._answers.pop(0)

    def transaction(self) -> ScriptedConnection:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def fileno(self) -> int:
        assert self._sock is not None
        return self._sock.fileno()


class OneConnection:
    def __init__(self, connection: ScriptedConnection) -> None:
        self._connection = connection

    def run(self, work: Callable[[Any], Any]) -> Any:
        return work(self._connection)


def call_of(work: Callable[[Connection], Any], connection: ScriptedConnection | None = None) -> DatabaseCall[Any]:
    return DatabaseCall(OneConnection(connection or ScriptedConnection()), work)  # type: ignore[arg-type]


def keys(count: int) -> list[ChunkKey]:
    return [ChunkKey(1000 - number, "c", 1, number) for number in range(count)]


def test_a_call_is_tried_once_more() -> None:
    tries: list[int] = []

    def work(_connection: Connection) -> int:
        tries.append(len(tries))
        if len(tries) == 1:
            raise psycopg.OperationalError("the shard was restarted")
        return 7

    assert call_of(work).run() == 7 and tries == [0, 1]


def test_a_call_that_was_given_up_is_not_tried_again() -> None:
    here, there = socket.socketpair()
    tries: list[int] = []

    def work(_connection: Connection) -> None:
        tries.append(1)
        call.abandon()
        # The connection is cut, so a caller that waits for its answer goes on.
        here.setblocking(False)
        assert here.recv(1) == b""
        raise psycopg.OperationalError("cut")

    with here, there:
        call = call_of(work, ScriptedConnection(sock=here))
        with pytest.raises(psycopg.OperationalError, match="cut"):
            call.run()
        with pytest.raises(psycopg.OperationalError, match="given up"):
            call.run()
    assert tries == [1]


def test_a_plan_that_any_chunk_may_match_is_walked_in_one_statement() -> None:
    row = (5, "c", 1, 0)
    connection = ScriptedConnection([row])
    assert Newest(plan(Query("a", "regex")), None, 3, "_0", Learnt())(connection) == [row]  # type: ignore[arg-type]
    ((statement, words),) = connection.asked
    assert b"candidate_0" in statement and words["limit"] == 3 and "near" not in words


def test_times_are_asked_for_from_the_newest_back_until_there_are_enough() -> None:
    """First how close the chunks are, then the candidates of as long as some of them take, then of the time before."""
    times = [(10_000 - 100 * number,) for number in range(8)]
    rows = [(9_900, "c", 1, 0), (9_000, "c", 1, 0)]
    connection = ScriptedConnection(times, rows[:1], rows[1:])
    found = Newest(plan(Query("needle")), None, 2, "", Learnt())(connection)  # type: ignore[arg-type]
    assert found == rows
    _, (_, first), (_, second) = connection.asked
    assert (first["first"], first["last"], first["limit"]) == (9_300, 10_000, 2)
    # As many of the time before as hold what is still wanted: one, where about one in four was a candidate.
    assert (second["last"], second["limit"]) == (9_299, 1) and second["first"] < 9_299


def test_bytes_are_fetched_together_and_in_growing_numbers() -> None:
    asked: list[int] = []
    some = keys(30)

    def fetch(part: Sequence[ChunkKey]) -> dict[ChunkKey, bytes]:
        asked.append(len(part))
        return {key: str(key.number).encode() for key in part if key.number != 3}

    stored = Stored(fetch, some)
    assert [stored.of(key) for key in some[:3]] == [b"0", b"1", b"2"] and asked == [8]
    assert stored.of(some[20]) == b"20" and asked == [8, 16]
    # One that has gone is looked for in all that follow.
    assert stored.of(some[3]) is None and asked == [8, 16, 6]


def test_the_bytes_of_a_chunk_belong_to_its_key() -> None:
    first, second = keys(2)
    connection = ScriptedConnection([("c", 1, 1, b"second"), ("c", 1, 9, b"of no key")])
    assert fetched(connection, [first, second], "") == {second: b"second"}  # type: ignore[arg-type]
