"""The shared catalogue of a home: its settings, the name of the home, and one set of connections for this process."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psycopg

from blockpty.cluster.database import Connection, Database
from blockpty.cluster.hosts import Hosts
from blockpty.cluster.postgres_index import PostgresIndex
from blockpty.search.index import IndexUnavailable

SHARDS_VARIABLE: Final = "BLOCKPTY_DATABASE_SHARDS"
ADDRESS_VARIABLE: Final = "BLOCKPTY_ADDRESS"
_NAME_FILE: Final = "catalogue_name"

_hosts: dict[tuple[Path, str], Hosts] = {}
_lock = threading.Lock()
Question = Callable[[PostgresIndex, Connection], "str | None"]


def open_shared(home: Path, url: str) -> PostgresIndex:
    """Return the index of a home in a database; nothing is connected before it is used. Raises BadRequest."""
    shards = [one.strip() for one in os.environ.get(SHARDS_VARIABLE, "").split(",") if one.strip()]
    database = Database(url)
    with _lock:
        # One for all of this process: a lease that one of them takes is held by the others as well.
        hosts = _hosts.get((home, url))
        if hosts is None:
            hosts = Hosts(home_name(home), socket.gethostname(), os.environ.get(ADDRESS_VARIABLE, ""))
            _hosts[home, url] = hosts
    return PostgresIndex(database, hosts, [Database(shard) for shard in shards])


def home_name(home: Path) -> str:
    """Return the name of a home among all that write to a catalogue; it is made once and stays with the home."""
    path = home / _NAME_FILE
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = f"{socket.gethostname()[:40]}-{secrets.token_hex(8)}"
    temporary = home / f".{_NAME_FILE}.{secrets.token_hex(4)}"
    if not path.exists():
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(made + "\n")
        try:
            os.link(temporary, path)  # whole, and only if no other engine was first
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    return path.read_text("utf-8").strip()


def claim(home: Path, url: str, conversation: str) -> str | None:
    """Take a new conversation for this home; return where it is when another home has it.

    Raises IndexUnavailable when the database does not answer.
    """
    return _asked(home, url, lambda index, connection: _claimed(index, connection, conversation))


def elsewhere(home: Path, url: str, conversation: str) -> str | None:
    """Return where a conversation of another home is; None when it is ours or of no home. Raises IndexUnavailable."""
    return _asked(home, url, lambda index, connection: index.hosts.elsewhere(connection, conversation))


def _claimed(index: PostgresIndex, connection: Connection, conversation: str) -> str | None:
    if index.hosts.claim(connection, [conversation]):
        return None
    return index.hosts.elsewhere(connection, conversation) or index.hosts.holder(connection, conversation)


def _asked(home: Path, url: str, question: Question) -> str | None:
    index = open_shared(home, url)
    try:
        index.positions()  # makes the tables, and makes us known
        return index.database.run(lambda connection: question(index, connection))
    except psycopg.Error as problem:
        raise IndexUnavailable(str(problem).strip()) from problem
    finally:
        index.disconnect()
