"""A container of podman, made of this machine's own bash; no image is fetched, and no network is asked for."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAMS = ("bash", "sh", "stty", "cat", "seq", "sleep")
# What works where cgroups and limits are not ours to change, as in most places where tests run.
OPTIONS = ("--cgroup-manager", "cgroupfs")
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000")


@contextmanager
def podman_container(directory: Path) -> Iterator[str]:
    """Run a container and give its name; skip where podman is not there, or may not run one."""
    if shutil.which("podman") is None:
        pytest.skip("needs podman")
    root = directory / "root"
    for name in ("proc", "sys", "dev", "etc", "run", "tmp"):
        (root / name).mkdir(parents=True)
    for name in PROGRAMS:
        program = Path(str(shutil.which(name))).resolve()
        _copy(program, root / "bin" / name)
        linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+)", linked):
            _copy(Path(library).resolve(), root / library.lstrip("/"))
    name = f"blockpty-test-{secrets.token_hex(4)}"
    runtime = ("--runtime", "runc") if shutil.which("runc") else ()
    run = ["podman", *runtime, *OPTIONS, "run", "-d", "--name", name, "--network", "none", *LIMITS]
    started = subprocess.run(
        [*run, "--rootfs", str(root), "/bin/sleep", "600"], capture_output=True, text=True, check=False
    )
    try:
        if started.returncode:
            pytest.skip(f"podman runs no container here: {started.stderr.strip()[-200:]}")
        yield name
    finally:
        subprocess.run(["podman", "rm", "-f", "-t", "0", name], capture_output=True, check=False)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(source, target)
