"""Entry point of the host's processes: keeper and recorder, each of which becomes the other by a fork."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys

from blockpty.host.keeper import Keeper, splice_works
from blockpty.host.recorder import Recorder
from blockpty.host.requests import OPERATIONS
from blockpty.host.state import HostState


def raise_limit() -> tuple[int, int]:
    """Allow ourselves as many descriptors as we may have; return the limits that a shell is to get."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    return limits


def main(home: str, home_fd: int, ready_fd: int) -> None:
    """Be the host of `home`, whose lock is on `home_fd`; what listens then sends a byte through `ready_fd`."""
    os.chdir("/")
    os.umask(0o077)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    limits = raise_limit()
    os.set_inheritable(home_fd, False)
    state = HostState(home, home_fd, limits)
    state.splice = splice_works(state.dir_fd)

    keeper = Keeper(state, None, ready_fd)
    while keeper.run() is not None:
        recorder = Recorder(state, keeper.child_link, OPERATIONS)
        del keeper
        if recorder.run() is None:
            break
        keeper = Keeper(state, recorder.child_link)
        del recorder
    os._exit(0)


def guarded_main(home: str, home_fd: int, ready_fd: int) -> None:
    try:
        main(home, home_fd, ready_fd)
    except BaseException:  # noqa: BLE001  the log is the only place left for it
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
