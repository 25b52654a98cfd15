"""Index backends: by the environment, and by what is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from blockpty.errors import BadRequest
from blockpty.search import backends, sqlite
from blockpty.search.backends import DATABASE_VARIABLE, database_url, index_directory, open_index
from blockpty.search.scan import Scan
from blockpty.search.sqlite import SqliteIndex


@pytest.fixture(autouse=True)
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE_VARIABLE, raising=False)


def test_a_home_has_an_index_of_its_own(tmp_path: Path) -> None:
    assert isinstance(open_index(tmp_path), SqliteIndex)
    assert not index_directory(tmp_path).exists()


def test_without_the_functions_of_sqlite_everything_is_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "supported", lambda: False)
    assert isinstance(open_index(tmp_path), Scan)


def test_an_empty_url_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE_VARIABLE, "")
    assert database_url() is None


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_psycopg(name: str) -> ModuleType:
        if name.startswith("blockpty.cluster"):
            raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")
        return import_module(name)

    monkeypatch.setenv(DATABASE_VARIABLE, "postgresql://nowhere/db")
    monkeypatch.setattr(backends, "import_module", without_psycopg)
    with pytest.raises(BadRequest, match="psycopg"):
        open_index(tmp_path)
