"""Lines of a record's files, as a test compares them."""

from __future__ import annotations

from typing import Any

import orjson


def without_checksums(line: bytes) -> dict[str, Any]:
    return {name: value for name, value in orjson.loads(line).items() if name not in ("sum", "prev", "crc")}
