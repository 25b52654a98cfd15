"""Fixtures of the cluster tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import corpus
from tests.support.postgres_servers import Databases, Servers, postgres_servers
from tests.support.shared_indexes import Keep

__all__ = ["postgres_servers"]


@pytest.fixture
def databases(postgres_servers: Servers) -> Iterator[Databases]:
    with postgres_servers.databases() as made:
        yield made


@pytest.fixture
def keep(databases: Databases) -> Iterator[Keep]:
    with ExitStack() as stack:
        yield Keep(stack)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return corpus.home_of(tmp_path / "here", conversations=6, blocks=8, seed=1)
