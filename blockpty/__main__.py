"""`python -m blockpty`: the same program as the `blockpty` command."""

from __future__ import annotations

import gc
import sys

from blockpty.surfaces.cli.main import main


def start() -> int:
    """Run the command line of this process and return its exit status."""
    # A plain call is over before there is garbage to collect: looking for it would take a sixth of its time, half of
    # that when Python ends. Whatever runs longer has an event loop, and turns this on again (invocation.finished).
    gc.disable()
    try:
        return main()
    finally:
        gc.freeze()


if __name__ == "__main__":
    sys.exit(start())
