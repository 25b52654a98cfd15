"""What all hosts have done: the counts of the coordinator say what a look at every block says."""

from __future__ import annotations

import pytest

from blockpty.cluster.postgres_index import PostgresIndex
from tests.support.index_contract import home, records
from tests.support.overview_contract import OverviewContract
from tests.support.postgres_servers import Databases
from tests.support.shared_indexes import Keep, index_of

__all__ = ["home", "records"]


class TestActivity(OverviewContract):
    @pytest.fixture
    def index(self, databases: Databases, keep: Keep) -> PostgresIndex:
        return keep(index_of(databases))
