"""Requests of clients to the recorder: one function per operation, and the table of them.

Each function checks its request, does it, and returns the fields of the answer, or None when the answer comes later.
It raises `Refused` before anything has been done. No socket and no descriptor is touched here.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import signal
import stat
from typing import Any

from blockpty.files.opening import UnsafeFile
from blockpty.host import closing, descriptors, protocol, recovery, spawn
from blockpty.host.closing import Pending
from blockpty.host.context import ConnectedClient
from blockpty.host.input_queue import Input, storage_full
from blockpty.host.locks import LockHeld, held_record, is_held
from blockpty.host.protocol import Refused
from blockpty.host.record import StorageFailed, Stream, Timeline, entries_since, sizes_of, stream_size
from blockpty.host.recorder import Answer, Operation, Recorder
from blockpty.host.terminal import Terminal

# What the host itself says in a spawn entry.
RESERVED = frozenset(("offset", "ts", "kind", "pid", "transport", "boot", "sum", "prev", "crc"))
_INPUT_FIELDS: dict[str, tuple[type, Any]] = {
    "author": (str, ...), "principal": (str, None), "req": (str, None), "submit": (dict, None),
    "program": (bool, False), "secret": (str, None), "hidden_only": (bool, False),
}  # fmt: skip


# -- reading a request --------------------------------------------------------------------------------------------


def _field(request: dict[str, Any], name: str, kind: type, default: Any = ...) -> Any:
    value = request.get(name, default)
    if value is ... or not (value is default or (isinstance(value, kind) and not (kind is int and value is True))):
        raise Refused("bad_request", f"{name} must be {kind.__name__}", field=name)
    return value


def _fields(request: dict[str, Any], known: dict[str, tuple[type, Any]]) -> dict[str, Any]:
    """Return several fields at once, by name: each command has them, and `_field` costs a call for each."""
    found = {}
    for name, (kind, default) in known.items():
        value = request.get(name, default)
        fits = type(value) is kind or (value is default and default is not ...)
        found[name] = value if fits else _field(request, name, kind, default)
    return found


def _number(request: dict[str, Any], name: str, low: int, high: int, default: Any = ...) -> int:
    value = _field(request, name, int, default)
    if not low <= value <= high:
        raise Refused("bad_request", f"{name} must be from {low} to {high}", field=name)
    return int(value)


def _strings(request: dict[str, Any], name: str) -> list[str]:
    value = request.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(s, str) and "\0" not in s for s in value):
        raise Refused("bad_request", f"{name} must be a list of strings", field=name)
    return value


def _conversation(request: dict[str, Any]) -> str:
    name = request.get("conversation")
    if not protocol.is_conversation_id(name):
        raise Refused("bad_request", f"{name!r} cannot name a conversation", "letters, digits, . _ - (at most 128)")
    return str(name)


def _fence(recorder: Recorder, request: dict[str, Any]) -> None:
    """Refuse a writer that has been replaced by a newer one."""
    epoch = request.get("epoch")
    newest = recorder.state.epochs.get(request["conversation"], 0)
    if epoch is not None and (not isinstance(epoch, int) or epoch < newest):
        raise Refused(
            "busy", "another engine has taken over this conversation", "attach to it again", epoch=epoch, newest=newest
        )


def _live(recorder: Recorder, request: dict[str, Any]) -> Terminal:
    name = _conversation(request)
    terminal = recorder.terminals.get(name)
    if terminal is None:
        if name in recorder.state.shells:
            raise Refused("storage_full", f"the files of {name} cannot be opened")
        if not os.path.isdir(_directory(recorder, name)):
            raise Refused("not_found", f"there is no conversation {name}")
        if is_held(_directory(recorder, name)):
            raise protocol.held_elsewhere(name)
        raise Refused("exited", f"the shell of {name} has ended")
    return terminal


def _writable(recorder: Recorder, request: dict[str, Any]) -> Terminal:
    terminal = _live(recorder, request)
    _fence(recorder, request)
    return terminal


def _directory(recorder: Recorder, name: str) -> str:
    return os.path.join(recorder.state.home, "conversations", name)


# -- operations ---------------------------------------------------------------------------------------------------


def hello(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    if request.get("protocol") != protocol.PROTOCOL:
        raise Refused(
            "bad_request", f"the running host speaks protocol {protocol.PROTOCOL}",
            "close its conversations, so that it exits", protocol=protocol.PROTOCOL,
        )  # fmt: skip
    state = recorder.state
    return {
        "protocol": protocol.PROTOCOL, "recorder": state.recorder, "keeper": state.keeper, "version": protocol.VERSION,
        "transport": "splice" if recorder.splice else "read",
        # Shells whose keeper was killed: their exit status will be null.
        "orphans": sum(not shell.mine for shell in state.shells.values()),
    }  # fmt: skip


def open_(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    name = _conversation(request)
    argv, env = _strings(request, "argv"), _field(request, "env", dict)
    if not all(isinstance(v, str) and "\0" not in k + v and k and "=" not in k for k, v in env.items()):
        raise Refused("bad_request", "env must map names to strings", field="env")
    wanted = {
        "conversation": name,
        "directory": _own_directory(recorder, _field(request, "directory", str)),
        "argv": argv, "env": env,
        "cwd": _field(request, "cwd", str),
        "cols": _number(request, "cols", 1, 65535),
        "rows": _number(request, "rows", 1, 65535),
        "persist": _field(request, "persist", bool, False),
        "entry": _field(request, "entry", dict, {}),
        "umask": _number(request, "umask", 0, 0o777, 0o022),
        "executable": _field(request, "executable", str, None),
        "sandbox": _field(request, "sandbox", dict, None),
        "is_piped": _field(request, "is_piped", bool, False) and recorder.splice,
        "durability": _field(request, "durability", str, "interval"),
        "process_limit": _number(request, "process_limit", 0, 1 << 22, protocol.PROCESS_LIMIT),
        "shell_nice": _number(request, "shell_nice", 0, protocol.NICEST, protocol.SHELL_NICE),
        "segment_bytes": _number(request, "segment_bytes", 4096, 1 << 40, protocol.SEGMENT_BYTES),
    }  # fmt: skip
    if wanted["durability"] not in protocol.DURABILITIES:
        raise Refused("bad_request", f"durability is one of {', '.join(protocol.DURABILITIES)}", field="durability")
    if not RESERVED.isdisjoint(wanted["entry"]):
        raise Refused("bad_request", f"entry must not set {', '.join(sorted(RESERVED))}", field="entry")
    if "\0" in wanted["cwd"] + (wanted["executable"] or ""):
        raise Refused("bad_request", "a path cannot contain NUL")
    terminal = recorder.terminals.get(name)
    if terminal is not None:
        # Asked again after a restart that swallowed the answer: the nonce says that it is the same shell.
        nonce = wanted["entry"].get("nonce")
        if nonce is not None and terminal.shell.entry.get("nonce") == nonce:
            return {"pid": terminal.pid, **terminal.sizes()}
    opening = (pending.request["conversation"] for pending in recorder.tickets.values())
    if name in recorder.state.shells or name in recorder.closing or name in opening:
        raise Refused("busy", f"conversation {name} has a shell already")
    if not descriptors.has_room():
        raise Refused(
            "pty_limit", "the PTY host has too few descriptors for another conversation",
            "close conversations, or raise the limit of open files (ulimit -n)",
        )  # fmt: skip
    _try_files(wanted["directory"], wanted["segment_bytes"])
    recorder.spawn(wanted, Pending(recorder, client, request.get("id")))
    return None


def _own_directory(recorder: Recorder, path: str) -> str:
    """The conversation's directory: directly in <home>/conversations, ours, closed to others."""
    parent = os.path.join(recorder.state.home, "conversations")
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if os.path.dirname(real) != parent or os.path.basename(path) in ("", ".", ".."):
        raise Refused("bad_request", f"{path} is not in {parent}", field="directory")
    try:
        status = os.lstat(real)
    except OSError as error:
        raise Refused("bad_request", f"{path}: {error.strerror}", field="directory") from None
    if stat.S_ISLNK(status.st_mode):
        raise Refused("bad_request", f"{path} is a symbolic link", field="directory")
    protocol.check_private(status, real)
    return real


def _try_files(directory: str, segment_bytes: int) -> None:
    """Make sure that the record can be written before there is anything to record."""
    try:
        with held_record(directory):
            recovery.recover(directory, recovery.boot_id())
        Stream(directory, segment_bytes).close()
        Timeline(directory).close()
    except LockHeld:
        # By our keeper, which was asked before a recorder was killed, or by another host: the keeper says which.
        return
    except UnsafeFile as error:
        raise Refused(
            "spool_corrupt", f"{error.filename} cannot be used: {error.strerror}", "move it away", path=error.filename
        ) from None
    except OSError as error:
        raise storage_full(StorageFailed(error, directory)) from None


def subscribe(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    name = _conversation(request)
    epoch = _number(request, "epoch", 0, 1 << 62)
    if not client.channel.fds:
        raise Refused("bad_request", "subscribe needs one descriptor")
    recorder.subscribe(client, name, client.channel.fds.popleft())
    if epoch > recorder.state.epochs.get(name, 0):
        recorder.set_epoch(name, epoch)
    terminal = recorder.terminals.get(name)
    if terminal is not None:
        return {"live": True, "pid": terminal.pid, "persist": terminal.shell.persist, **terminal.sizes()}
    return {"live": False, "pid": None, "persist": False, **_dead_sizes(recorder, name)}


def _dead_sizes(recorder: Recorder, name: str) -> dict[str, Any]:
    return sizes_of(_directory(recorder, name))


def recover(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    """Recover the files of a conversation whose shell was lost with the machine; a reader asks for this first."""
    name = _conversation(request)
    directory = _directory(recorder, name)
    if name in recorder.terminals or name in recorder.state.shells or name in recorder.closing:
        return {"mended": False}  # words: on the wire
    if is_held(directory):
        return {"mended": False}  # words: on the wire
    try:
        return {"mended": recovery.recover(directory, recovery.boot_id())}  # words: on the wire
    except OSError as error:
        raise storage_full(StorageFailed(error, directory)) from None


def unsubscribe(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    recorder.unsubscribe(client, _conversation(request))
    return {}


def input_(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    entered = _entered(recorder, request) if "again" in request else None
    if entered is not None:
        return entered
    terminal = _writable(recorder, request)
    try:
        data = binascii.a2b_base64(_field(request, "data_b64", str), strict_mode=True)
    except ValueError:  # binascii.Error is one; characters beyond ASCII are another
        raise Refused("bad_request", "data_b64 is not base64", field="data_b64") from None
    fields = _fields(request, _INPUT_FIELDS)
    deadline_ms = _number(request, "deadline_ms", 0, 1 << 31, protocol.DEADLINE_MS)
    pending = Pending(recorder, client, request.get("id"))

    def reply(answer: Input | Refused) -> None:
        if isinstance(answer, Refused):
            pending.refuse(answer)
        else:
            pending.done({
                "offset": answer.offset, "timeline": answer.timeline, "accepted": answer.done,
                "foreground_pid": answer.foreground,
            })

    terminal.input.type(Input(data, fields, reply), deadline_ms)
    return None


def cut(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    """Stop what one author is typing, at a byte, and refuse what of it waits its turn."""
    terminal = _writable(recorder, request)
    refusal = Refused(_field(request, "code", str), _field(request, "message", str))
    terminal.input.cut_author(_field(request, "author", str), refusal)
    return terminal.sizes()


def _entered(recorder: Recorder, request: dict[str, Any]) -> Answer:
    """The answer to an input that was entered before the last recorder was killed; None when it was not.

    The request says in `again` how long the timeline was, for all its sender knew, when it was first made.
    """
    answer: Answer = None
    req = _field(request, "req", str)
    again = _number(request, "again", 0, 1 << 62)
    for size, entry in entries_since(_directory(recorder, _conversation(request)), again):
        if entry.get("req") == req and entry.get("kind") == "input":
            typed = len(base64.b64decode(_field(request, "data_b64", str)))
            answer = {"offset": entry["offset"], "timeline": size, "accepted": typed}
        elif entry.get("req") == req and entry.get("kind") == "input_cut" and answer is not None:
            answer.update(timeline=size, accepted=entry["accepted"])
    if answer is not None and answer["accepted"] is None:
        raise Refused("internal", f"the recorder was killed while it typed {req}: it may have gone in", retry=True)
    return answer


def note(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    """Also for a conversation whose shell has ended: its record may still be added to."""
    name = _conversation(request)
    _fence(recorder, request)
    directory = _directory(recorder, name)
    if "again" in request:
        for size, entry in entries_since(directory, _number(request, "again", 0, 1 << 62)):
            if entry.get("kind") == "note" and entry.get("note") == request.get("note"):
                return {"offset": entry["offset"], "timeline": size}
    terminal = recorder.terminals.get(name)
    if terminal is not None:
        terminal.note(request.get("note"))
        return terminal.sizes()
    if name in recorder.state.shells or not os.path.isdir(directory):
        _live(recorder, request)
    try:
        timeline = Timeline(directory)
    except LockHeld:
        raise protocol.held_elsewhere(name) from None
    except OSError as error:
        raise storage_full(StorageFailed(error, directory)) from None
    try:
        timeline.write(stream_size(directory), "note", {"note": request.get("note")})
    except StorageFailed as failure:
        raise storage_full(failure) from None
    finally:
        timeline.close()
    recorder.grew(name, 0)
    return _dead_sizes(recorder, name)


def resize(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    terminal = _writable(recorder, request)
    cols, rows = _number(request, "cols", 1, 65535), _number(request, "rows", 1, 65535)
    terminal.resize(cols, rows, _field(request, "author", str))
    return terminal.sizes()


def signal_(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    terminal = _writable(recorder, request)
    name = _field(request, "signal", str).removeprefix("SIG")
    number = getattr(signal, "SIG" + name, None)
    if not isinstance(number, signal.Signals):
        raise Refused("bad_request", f"there is no signal {name!r}", field="signal")
    target = _field(request, "target", str, "foreground")
    if target == "session":
        spawn.signal_session(terminal.pid, terminal.shell.master, number, sandboxed=terminal.shell.is_inside)
    elif target == "shell":
        closing.signal_shell(terminal, number)
    elif target == "foreground":
        group = terminal.foreground()
        with contextlib.suppress(ProcessLookupError):
            if group is not None and group > 1:
                os.killpg(group, number)
    else:
        raise Refused("bad_request", "target must be foreground, shell or session", field="target")
    return terminal.sizes()


def inspect(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    name = _conversation(request)
    terminal = recorder.terminals.get(name)
    if terminal is not None:
        terminal.move(whole=True)
    if terminal is None or terminal.ended:
        return {"live": False, **_dead_sizes(recorder, name)}
    if terminal.failed is not None and terminal.shell.exit is not None:
        # Its end cannot be entered yet.
        return {"live": False, "storage": _why(terminal.failed), **terminal.sizes()}
    if request.get("brief"):
        # A wait asks for this, and all else takes most of the time.
        return {"live": True, **terminal.state(), **terminal.sizes()}
    # Asked once: a program may begin or end in between, and its name would be said of the shell.
    group = terminal.foreground()
    facts = [spawn.process_facts(pid) for pid in {group, terminal.shell_pid} if pid]
    try:
        cols, rows = spawn.get_size(terminal.shell.master)
    except OSError:
        cols = rows = 0
    # Before its name: a process that was no copy of the shell any more has the name of its program by then.
    copy = spawn.is_copy(group, terminal.shell_pid) if group else None
    programs = reader = quiet_ms = None
    if group and request.get("programs"):
        programs, quiet_ms = spawn.group_names(group, terminal.shell_pid), terminal.silence.quiet_ms()
        reader = terminal.reader(patient=True)
    return {
        "live": True, "pid": terminal.shell_pid, **terminal.state(group),
        "unread": spawn.unread_bytes(terminal.shell.master),
        "foreground_pid": group, "foreground_name": spawn.process_name(group) if group else None,
        "foreground_copy": copy,
        "cols": cols, "rows": rows, "stopped": any(fact is not None and fact[0] in "Tt" for fact in facts),
        "working": terminal.shell_works(),
        "storage": _why(terminal.failed),
        "persist": terminal.shell.persist, "program": spawn.process_name(terminal.shell_pid), "programs": programs,
        "reader": spawn.process_name(reader) if reader is not None else None, "quiet_ms": quiet_ms,
        "sandbox": terminal.shell.entry.get("sandbox"),
        **terminal.sizes(),
    }  # fmt: skip


def _why(failed: StorageFailed | None) -> str | None:
    return None if failed is None else f"{failed.path}: {failed.strerror}"


def watch_idle(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    terminal = _live(recorder, request)
    terminal.silence.watch(_number(request, "ms", 0, 1 << 31))
    return terminal.sizes()


def adopt(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    terminal = _live(recorder, request)
    terminal.shell.reference = spawn.program_image(terminal.shell_pid)
    recorder.tell_keeper(terminal.shell)
    return terminal.sizes()


def set_persist(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    terminal = _live(recorder, request)
    terminal.shell.persist = _field(request, "persist", bool)
    recorder.tell_keeper(terminal.shell)
    return terminal.sizes()


def find(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    """Whether one conversation is live, and how many are: `list` is long where there are thousands."""
    return {"live": _conversation(request) in recorder.terminals, "open": len(recorder.terminals)}


def list_(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    return {
        "conversations": [
            {"conversation": name, "pid": terminal.shell_pid, "persist": terminal.shell.persist, **terminal.sizes()}
            for name, terminal in recorder.terminals.items()
        ]
    }


def close(recorder: Recorder, client: ConnectedClient, request: dict[str, Any]) -> Answer:
    grace_ms = _number(request, "grace_ms", 0, 1 << 31, protocol.GRACE_MS)
    name = _conversation(request)
    if "again" in request and name not in recorder.terminals and name not in recorder.state.shells:
        for entry in reversed([entry for _, entry in entries_since(_directory(recorder, name), 0)]):
            if entry.get("kind") == "exit":
                return {"status": entry["status"], "signal": entry["signal"], **_dead_sizes(recorder, name)}
    terminal = None if name in recorder.closing else _writable(recorder, request)
    pending = Pending(recorder, client, request.get("id"))
    closing.begin(recorder, name, terminal, grace_ms, pending, leave=_field(request, "leave", bool, False))
    return None


OPERATIONS: dict[str, Operation] = {
    "hello": hello,
    "open": open_,
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "mend": recover,  # words: on the wire
    "input": input_,
    "cut": cut,
    "note": note,
    "resize": resize,
    "signal": signal_,
    "inspect": inspect,
    "watch_idle": watch_idle,
    "adopt": adopt,
    "set_persist": set_persist,
    "close": close,
    "list": list_,
    "find": find,
}
