"""Checks of `doctor`: the host, the conversations and the server of a home, and what agents may do in it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

from blockpty.surfaces.cli.checks import Finding

PORT: Final = 7717
_NAMED: Final = 3
_HOLDER_FIELDS: Final = 6
# Files of the server that hold secrets or give access.
_PRIVATE: Final = ("token", "tokens.json", "browsers.json", "peers", "server.json", "socket")


def check_host(home: Path) -> Finding:
    """Whether a host runs, answers, and has all its shells; or what a killed one has left."""
    directory = home / "host"
    if not (directory / "host.sock").exists():
        return _stale_lock(directory) or Finding("host", "ok", "none runs; it is started when it is needed")
    import asyncio

    return asyncio.run(_asked(home)) or _killed(directory)


async def _asked(home: Path) -> Finding | None:
    import asyncio

    from blockpty.errors import BlockptyError, NotFound
    from blockpty.host.client import HostClient

    try:
        client = await asyncio.wait_for(HostClient.connect(home, start=False), 5)
    except NotFound:
        return None
    except TimeoutError:
        return Finding("host", "failed", "the host does not answer", f"see {home / 'host' / 'host.log'}")
    except BlockptyError as error:
        return Finding("host", "failed", error.message, error.hint or f"see {home / 'host' / 'host.log'}")
    try:
        hello, live = await client.hello(), await client.list()
    finally:
        client.leave()
    running = f"keeper {hello.keeper} and recorder {hello.recorder} have {len(live)} shells, by {hello.transport}"
    if hello.orphans:
        return Finding(
            "host", "warning", f"{running}; of {hello.orphans} the keeper was killed",
            "their exit status will not be known; close them to be rid of this",
        )  # fmt: skip
    return Finding("host", "ok", running)


def _killed(directory: Path) -> Finding:
    try:
        said = json.loads((directory / "pid").read_bytes())
        alive = [pid for pid in said.values() if isinstance(pid, int) and _is_blockpty(pid)]
    except (OSError, ValueError, AttributeError):
        alive = []
    if alive:
        pids = " ".join(map(str, alive))
        return Finding(
            "host", "failed", f"process {pids} runs but does not listen", f"see {directory / 'host.log'}; kill {pids}"
        )
    found = _stale_lock(directory)
    left = "a host was killed and has left its socket; the next one removes it"
    return found or Finding("host", "warning", left, "nothing to do; shells that it had are gone")


def _is_blockpty(pid: int) -> bool:
    try:
        return b"blockpty" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _stale_lock(directory: Path) -> Finding | None:
    """Return a finding when a process holds the lock for starting a host, though none comes up."""
    holder = holder_of(directory / "start.lock")
    if holder is None:
        return None
    return Finding(
        "host", "warning", f"process {holder} is starting or ending a host",
        f"look again in a moment; if it stays so, kill {holder}",
    )  # fmt: skip


def holder_of(path: Path) -> int | None:
    """Return the process that holds the lock on a file, without asking for it; None where that is not known."""
    try:
        inode = f":{os.stat(path).st_ino}"
        lines = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        # "1: FLOCK  ADVISORY  WRITE 708 08:01:13115 0 EOF"; a line with an arrow only waits.
        fields = line.split()
        if len(fields) >= _HOLDER_FIELDS and fields[1] == "FLOCK" and fields[5].endswith(inode):
            return int(fields[4])
    return None


def check_conversations(home: Path) -> Finding:
    """Whether the conversations can be read, and which engines write them."""
    from blockpty.errors import SpoolError
    from blockpty.spool.checkpoint import load_meta
    from blockpty.spool.layout import Layout, conversations_directory

    directory = conversations_directory(home)
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return Finding("conversations", "ok", "none yet")
    except OSError as error:
        return Finding("conversations", "failed", f"{directory}: {error.strerror}", "repair the home first")
    unread, open_to_others, owned = [], [], 0
    for name in names:
        layout = Layout(directory / name)
        try:
            load_meta(layout.meta)
            if stat.S_IMODE(layout.directory.stat().st_mode) & 0o077:
                open_to_others.append(name)
        except (OSError, SpoolError) as error:
            unread.append(f"{name} ({getattr(error, 'message', None) or getattr(error, 'strerror', error)})")
            continue
        owned += holder_of(layout.lock) is not None
    facts = [f"{len(names)} in {directory}", *([f"{owned} of them have an engine"] if owned else [])]
    if unread or open_to_others:
        facts += [f"cannot be read: {_some(unread)}"] * bool(unread)
        facts += [f"others may enter: {_some(open_to_others)}"] * bool(open_to_others)
        remedies = ["restore meta.json, or move the conversation out of the home"] * bool(unread)
        remedies += [f"chmod 700 {directory}/*"] * bool(open_to_others)
        return Finding("conversations", "warning", "; ".join(facts), "; ".join(remedies))
    return Finding("conversations", "ok", "; ".join(facts))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def check_server(home: Path) -> Finding:
    """Whether the server's files are there for this user alone, and whether a server listens on its socket."""
    directory = home / "server"
    there, wrong = [], []
    for path in (directory, *(directory / name for name in _PRIVATE)):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        there.append(path.name)
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            wrong.append(path)
    if wrong:
        names = " ".join(map(str, wrong))
        remedy = f"chmod go= {names}, or remove what is not yours; if others could read a token, make a new one"
        return Finding("server", "failed", f"not for this user alone: {names}", remedy)
    if not there:
        return Finding("server", "ok", "none has been started in this home")
    if "socket" in there and not _listens(directory / "socket"):
        return Finding("server", "warning", "it was killed and has left its socket", "nothing to do; the next takes it")
    running = "it runs" if "socket" in there else "it does not run"
    return Finding("server", "ok", f"{running}; its files belong to this user alone")


def check_policy(home: Path) -> Finding:
    """Whether a policy holds for agents."""
    from blockpty.errors import BlockptyError
    from blockpty.runtime.policy_file import NAME, PolicyFile

    if not os.path.lexists(home / NAME):
        return Finding("policy", "ok", "none: agents may do everything; blockpty policy init writes the default one")
    try:
        policy = PolicyFile(home).current()
    except BlockptyError as error:
        return Finding("policy", "failed", error.message, "blockpty policy check says where it is wrong")
    count = 0 if policy is None else len(policy.rules)
    return Finding("policy", "ok", f"{home / NAME} holds, with {count} rule{'' if count == 1 else 's'}")


def check_agents(home: Path) -> Finding:
    """Whether agents are halted everywhere, and how many approvals wait at the server; none is started."""
    from blockpty.runtime.halt_file import NAME, HaltFile

    who = HaltFile(home).who() if os.path.lexists(home / NAME) else None
    if who is not None:
        said = f"{who} has halted agents in all conversations"
        return Finding("agents", "warning", said, "blockpty release lets them type again")
    directory = home / "server"
    if not (os.path.lexists(directory / "token") and _listens(directory / "socket")):
        return Finding("agents", "ok", "they are not halted")
    import asyncio

    from blockpty.errors import BlockptyError

    try:
        count = asyncio.run(asyncio.wait_for(_waiting(home), 5))
    except (BlockptyError, TimeoutError) as error:
        return Finding(
            "agents", "warning", f"the server does not say whether they wait for approvals: {error}",
            f"see {directory}; blockpty serve starts another",
        )  # fmt: skip
    if count:
        said = f"{count} approval{' is' if count == 1 else 's are'} pending"
        return Finding("agents", "warning", said, "blockpty answer asks you about each of them")
    return Finding("agents", "ok", "they are not halted, and wait for no approval")


async def _waiting(home: Path) -> int:
    from blockpty.surfaces.client import Client

    async with Client(home, start=False) as client:
        return len((await client.approvals()).approvals)


def check_port(home: Path) -> Finding:
    """Whether the port that a server takes first is free, or that of this home's server."""
    import errno
    import socket

    name = f"port {PORT} of 127.0.0.1"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
            return Finding("port", "ok", f"{name} is free")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                remedy = "have serve use another with --port"
                return Finding("port", "warning", f"{name} cannot be used: {error.strerror}", remedy)
    if _port_of_server(home) == PORT:
        return Finding("port", "ok", f"the server of this home has {name}")
    remedy = "a server of this home takes a free one; choose one with serve --port, or end the other program"
    return Finding("port", "warning", f"another program has {name}", remedy)


def _port_of_server(home: Path) -> int | None:
    from urllib.parse import urlsplit

    directory = home / "server"
    try:
        said = json.loads((directory / "server.json").read_bytes())
        port = urlsplit(said["url"]).port
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return port if _listens(directory / "socket") else None


def _listens(path: Path) -> bool:
    import socket

    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(2)
        try:
            descriptor: Any = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            probe.connect(f"/proc/self/fd/{descriptor}/{path.name}" if os.path.isdir("/proc/self/fd") else str(path))
        except OSError:
            return False
        finally:
            os.close(descriptor)
    return True
