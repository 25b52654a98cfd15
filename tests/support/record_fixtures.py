"""The versioned fixtures of spool_schema/, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tests.support.schemas import SCHEMAS

FIXTURES = sorted((SCHEMAS / "fixtures").glob("*.jsonl"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def every(name: str) -> Iterator[dict[str, Any]]:
    return (line[name] for path in FIXTURES for line in lines(path) if name in line)
