"""How much of what is very often, very large or all at once a run of the tests plays (docs/how-to/torture.md)."""

from __future__ import annotations

import os

LONG = os.environ.get("BLOCKPTY_TORTURE") == "long"
