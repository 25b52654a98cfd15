"""What tests of sandboxes share: the methods that work here, a home directory with secrets, and a sandboxed shell."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from blockpty import Engine
from blockpty.host.sandbox import LEAST_LANDLOCK, landlock_abi
from blockpty.runtime import sandboxing
from blockpty.runtime.conversation import Conversation
from tests.support.policies import write_policy

SECRET: Final = "canary-4711"
METHODS: Final = ("bwrap", "landlock")


def works(method: str) -> str | None:
    """Why a method does not work here; None where it does."""
    if method == "landlock":
        return None if landlock_abi() >= LEAST_LANDLOCK else "the kernel has no Landlock, or an old one"
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not installed"
    works, _, said = sandboxing._probe(os.path.realpath(program))
    return None if works else f"bwrap does not work here: {said}"


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    """A method that works here."""
    name: str = request.param
    if why := works(name):
        pytest.skip(why)
    return name


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with secrets in it."""
    there = tmp_path / "user"
    for name in (".ssh/id", ".aws/credentials", ".config/gh/hosts.yml", "own/token"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text(SECRET)
    (there / ".netrc").write_text(SECRET)
    (there / ".bashrc").write_text("# nothing\n")
    monkeypatch.setenv("HOME", str(there))
    return there


@asynccontextmanager
async def sandboxed(
    home: Path, tmp_path: Path, policy: str, shell: str = "bash", profile: str = "one"
) -> AsyncIterator[Conversation]:
    write_policy(home, policy)
    (cwd := tmp_path / "project").mkdir(exist_ok=True)
    async with Engine(home) as engine:
        yield await engine.open("c1", shell=shell, cwd=str(cwd), sandbox=profile)


@contextlib.contextmanager
def place_outside() -> Iterator[Path]:
    """A directory that is not below /tmp, which a sandbox has of its own."""
    for around in ("/var/lib", "/opt", "/dev/shm", str(Path.home())):
        if os.access(around, os.W_OK):
            there = Path(tempfile.mkdtemp(prefix="blockpty-outside-", dir=around))
            break
    else:
        pytest.skip("there is no directory to write to outside of /tmp")
    try:
        yield there
    finally:
        shutil.rmtree(there)
