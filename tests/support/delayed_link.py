"""Two network namespaces and a link between them that delays packets, loses some, and can be cut.

Run as a script it is the link: it has a TUN device in each namespace and passes packets on. The kernel's own netem is
not in every kernel. SIGUSR1 cuts the link, SIGUSR2 restores it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import random
import secrets
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x0001 | 0x1000
DEVICE = "link0"
NEAR, FAR = "10.91.0.1", "10.91.0.2"


@dataclass
class DelayedLink:
    """The link; `near` and `far` are the namespaces, in which `ip netns exec` runs programs."""

    near: str
    far: str
    process: subprocess.Popen[bytes]

    def cut(self) -> None:
        """Let no packet through any more; nothing is said to either side."""
        self.process.send_signal(signal.SIGUSR1)

    def restore(self) -> None:
        """Let packets through again."""
        self.process.send_signal(signal.SIGUSR2)


@contextmanager
def delayed_link(delay_ms: int, loss: float) -> Iterator[DelayedLink]:
    """Make both namespaces and the link; skip where that is not allowed."""
    if os.geteuid() != 0 or shutil.which("ip") is None or not os.path.exists("/dev/net/tun"):
        pytest.skip("needs root, ip and TUN devices")
    names = [f"bp{secrets.token_hex(3)}{side}" for side in ("near", "far")]
    link: subprocess.Popen[bytes] | None = None
    try:
        for name in names:
            if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
                pytest.skip("no network namespace may be made here")
        command = [sys.executable, __file__, *names, str(delay_ms), str(loss)]
        link = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert link.stdout is not None and link.stdout.readline() == b"ready\n"
        for name, address in zip(names, (NEAR, FAR), strict=True):
            for line in (f"addr add {address}/30 dev {DEVICE}", f"link set {DEVICE} up", "link set lo up"):
                subprocess.run(["ip", "-n", name, *line.split()], check=True)
        yield DelayedLink(names[0], names[1], link)
    finally:
        if link is not None:
            link.kill()
            link.wait()
            if link.stdout is not None:
                link.stdout.close()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _device(namespace: str) -> int:
    """Return a TUN device in a namespace; this process is in that afterwards."""
    with open(f"/var/run/netns/{namespace}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN_NO_PI))
    return descriptor


def main(near: str, far: str, delay_ms: str, loss: str) -> None:
    """Pass packets on until killed."""
    ends = [_device(near), _device(far)]
    chance, open_way = random.Random(21), True
    waiting: list[tuple[float, int, int, bytes]] = []
    cuts: list[bool] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: cuts.append(True))
    signal.signal(signal.SIGUSR2, lambda number, frame: cuts.append(False))
    os.write(1, b"ready\n")
    number = 0
    while True:
        now = time.monotonic()
        while cuts:
            open_way = not cuts.pop(0)
        while waiting and waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(waiting)
            if open_way:
                with contextlib.suppress(OSError):
                    os.write(target, packet)
        pause = max(0.0, waiting[0][0] - now) if waiting else 0.05
        for end in select.select(ends, [], [], pause)[0]:
            with contextlib.suppress(BlockingIOError):
                packet = os.read(end, 65536)
                if open_way and chance.random() >= float(loss):
                    number += 1
                    target = ends[1 - ends.index(end)]
                    heapq.heappush(waiting, (time.monotonic() + float(delay_ms) / 1000, number, target, packet))


if __name__ == "__main__":
    main(*sys.argv[1:])
