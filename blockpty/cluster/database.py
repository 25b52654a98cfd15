"""The connection pool of one database: connections are taken when needed and given back when whole."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from blockpty.errors import BadRequest

SCHEMA: Final = "blockpty"
CONNECT_SECONDS: Final = 3
STATEMENT_SECONDS: Final = 30
MAX_IDLE: Final = 8
# What is known to be costly and to gain nothing for statements of a few milliseconds.
SHARD_OPTIONS: Final = "-c jit=off -c enable_seqscan=off -c cursor_tuple_fraction=0.0001"
"""What the coordinator tells a shard: of few rows the planner would read all, with what they hold, rather than their
index; and it is the first rows of an answer that count."""
_OPTIONS: Final = {
    "search_path": f"{SCHEMA},public",
    "jit": "off",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{STATEMENT_SECONDS}s",
}

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"


class Database:
    """A database by its URL; any thread may use it.

    Args:
        url: as libpq takes it (`postgresql://user@host/name`, or words such as `host=... dbname=...`).
        settings: of every connection, beside those that all have.

    Raises BadRequest when the URL cannot be understood. Nothing is connected until something is asked.
    """

    def __init__(self, url: str, settings: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._settings = {**_OPTIONS, **(settings or {})}
        try:
            self._words = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
        except psycopg.ProgrammingError as problem:
            raise BadRequest(
                f"not the URL of a database: {str(problem).strip()}", hint="postgresql://user@host/name"
            ) from None
        self._idle: list[Connection] = []
        self._closed = False
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Where it is, for messages: host and database, without user and password."""
        return f"{self._words.get('host', 'localhost')}/{self._words.get('dbname', '')}"

    def words(self) -> dict[str, Any]:
        """Return the parts of the URL, named as libpq names them."""
        return dict(self._words)

    def connect(self) -> Connection:
        """Open a connection in autocommit mode for the caller alone; raises psycopg.OperationalError."""
        given = self._words.get("options", "")
        options = " ".join([*(f"-c {name}={value}" for name, value in self._settings.items()), str(given)])
        words: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, "application_name": "blockpty", **self._words}
        return psycopg.connect(autocommit=True, **{**words, "options": options})

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection; one that is broken, or was left inside a transaction, is closed instead of kept."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self.connect()
        try:
            yield connection
        finally:
            whole = not connection.closed and connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
            with self._lock:
                kept = whole and not self._closed and len(self._idle) < MAX_IDLE
                if kept:
                    self._idle.append(connection)
            if not kept:
                connection.close()

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` returns of a connection; it is called again when the connection was lost before it.

        So whatever it does must be one transaction, or safe to do twice. Raises psycopg.Error.
        """
        with self.connection() as connection:
            try:
                return work(connection)
            except psycopg.OperationalError:
                if not connection.closed:
                    raise
        # Those that were kept are as old as the server that has gone.
        self.forget()
        with self.connection() as connection:
            return work(connection)

    def forget(self) -> None:
        """Close the idle connections; a server that came back is met with fresh ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close the idle connections, and the rest when it is given back."""
        with self._lock:
            self._closed = True
        self.forget()
