"""What a home has done: the kept counts say what a look at every block says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blockpty.search.sqlite import SqliteIndex
from tests.support.index_contract import home, records
from tests.support.overview_contract import OverviewContract

__all__ = ["home", "records"]


class TestSqlite(OverviewContract):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[SqliteIndex]:
        index = SqliteIndex(tmp_path / "index")
        yield index
        index.close()
