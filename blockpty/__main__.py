"""`python -m blockpty`: the same program as the `blockpty` command."""

from __future__ import annotations

import sys

from blockpty.surfaces.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
