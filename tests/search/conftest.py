"""Fixtures of the search tests."""

from __future__ import annotations

from tests.support.postgres_servers import postgres_servers

__all__ = ["postgres_servers"]
