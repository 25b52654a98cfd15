"""Protocol of the host's sockets: lines of JSON, with file descriptors beside them, and where the socket lives.

This file knows framing, the home directory and who may talk. It does not know what any request means, and it starts
no process. Both ends use it: keeper and recorder (which must stay light: no asyncio, no third party) and the client.

Rules:
* one JSON object per line, UTF-8, at most `MAX_LINE` bytes;
* descriptors travel with the first byte of their line (SCM_RIGHTS). A receiver never gets bytes from behind a
  descriptor together with bytes from before it, so a line's descriptors are there when the line is complete;
* paths of AF_UNIX sockets end at about 104 bytes and homes may be deep, so the socket is named through a descriptor
  of its directory. The same descriptor keeps a directory that was checked from being exchanged afterwards.
"""

from __future__ import annotations

import array
import contextlib
import errno
import json
import os
import socket
import stat
import struct
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

PROTOCOL = 1
VERSION = "4"
MAX_LINE = 64 * 1024 * 1024
MAX_UNSENT = 16 * 1024 * 1024
MAX_CANONICAL = 4095
SEGMENT_BYTES = 256 * 1024 * 1024
# When the files are synced: host/sync_policy.py.
DURABILITIES = ("process", "interval", "block", "always")
# Processes that a conversation may have at once; a large build has some hundreds.
PROCESS_LIMIT = 4096
# How far the CPU shares of many shells are lowered, as a nice value, and the furthest: host/autogroup.py.
SHELL_NICE = 10
NICEST = 19
DEADLINE_MS = 5000
GRACE_MS = 1000
SILENCE_MS = 25
SOCKET_NAME = "host.sock"
LOCK_NAME = "start.lock"
PID_NAME = "pid"
LOG_NAME = "host.log"

_ID_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_ID_REST = _ID_FIRST | frozenset("._-")
_FD_SPACE = socket.CMSG_SPACE(16 * 4)
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_encode_json = json.JSONEncoder(separators=(",", ":")).encode
_decode_json = json.JSONDecoder().decode


class Refused(Exception):
    """A request that is answered with an error; `code` is one of blockpty.errors."""

    def __init__(self, code: str, message: str, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details = details

    def to_wire(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details}


def held_elsewhere(conversation: str) -> Refused:
    """Return the error for a conversation whose record another host writes."""
    return Refused(
        "busy", f"another PTY host holds the shell of {conversation} and writes its record",
        "close it there; its directory was moved here while the shell ran", conversation=conversation,
    )  # fmt: skip


def encode(message: dict[str, Any]) -> bytes:
    """Return one line, in ASCII: environments may hold bytes that are not UTF-8, as lone surrogates."""
    return (_encode_json(message) + "\n").encode()


def decode(line: bytes) -> dict[str, Any]:
    """Return the object of one line, or raise `Refused` (bad_request)."""
    try:
        message = _decode_json(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise Refused("bad_request", "the host got a line that is not JSON") from None
    if not isinstance(message, dict):
        raise Refused("bad_request", "the host got a line that is not a JSON object")
    return message


def is_conversation_id(text: object) -> bool:
    """Whether `text` may name a conversation: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`, never mapped, only refused."""
    return isinstance(text, str) and 0 < len(text) <= 128 and text[0] in _ID_FIRST and _ID_REST.issuperset(text)


class Channel:
    """One non-blocking connection: lines in, lines out, descriptors with either."""

    __slots__ = ("_in", "_out", "_scanned", "_unsent", "ended", "fd", "fds", "sock")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.fd = sock.fileno()
        self.fds: deque[int] = deque()
        self.ended = False
        self._in = bytearray()
        self._scanned = 0
        self._out: deque[tuple[memoryview, Sequence[int]]] = deque()
        self._unsent = 0

    def receive(self) -> list[bytes]:
        """Return the complete lines that have come; `ended` is true from the end of the connection on."""
        try:
            data, ancillary, _, _ = self.sock.recvmsg(65536, _FD_SPACE, _CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            self.ended = True
            return []
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                got = array.array("i")
                got.frombytes(payload[: len(payload) - len(payload) % got.itemsize])
                if not _CLOEXEC:
                    for fd in got:
                        os.set_inheritable(fd, False)
                self.fds.extend(got)
        if not data:
            self.ended = True
            return []
        if not self._in and data.endswith(b"\n"):
            return data[:-1].split(b"\n")
        self._in += data
        end = self._in.rfind(b"\n", self._scanned)
        if end < 0:
            self._scanned = len(self._in)
            if self._scanned > MAX_LINE:
                self.ended = True
            return []
        lines = bytes(self._in[:end]).split(b"\n")
        del self._in[: end + 1]
        self._scanned = 0
        return lines

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> bool:
        """Send a line, or as much of it as the socket takes now. Return whether everything has gone."""
        line = encode(message)
        if not self._out and not fds:
            try:
                sent = self.sock.send(line)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                self.ended = True
                return True
            if sent == len(line):
                return True
            line = line[sent:]
        self._out.append((memoryview(line), fds))
        self._unsent += len(line)
        if self._unsent > MAX_UNSENT:
            self.ended = True
        return self.flush()

    def flush(self) -> bool:
        """Send what is left over. Return whether everything has gone (or never can)."""
        while self._out and not self.ended:
            line, fds = self._out[0]
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            try:
                sent = self.sock.sendmsg([line], ancillary)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                self.ended = True
                break
            self._unsent -= sent
            if sent == len(line):
                self._out.popleft()
            else:
                self._out[0] = (line[sent:], ())
        return True

    def drop_fds(self) -> None:
        """Close descriptors that came and that no line asked for."""
        while self.fds:
            os.close(self.fds.popleft())

    def close(self) -> None:
        self.ended = True
        self.drop_fds()
        self.sock.close()


# -- the home -----------------------------------------------------------------------------------------------------


def open_host_directory(home: str) -> int:
    """Return a descriptor of `<home>/host`, which is made if need be, and is ours alone.

    Raises:
        Refused: spawn_failed, when it is a symbolic link, belongs to another user or is open to others.
    """
    path = os.path.join(home, "host")
    old = os.umask(0o077)
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    finally:
        os.umask(old)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise Refused("spawn_failed", f"{path} cannot be used: {error.strerror}", path=path) from None
    try:
        check_private(os.fstat(fd), path)
    except Refused:
        os.close(fd)
        raise
    return fd


def check_private(status: os.stat_result, path: str) -> None:
    """Refuse a directory that is not ours, or that others may enter."""
    if not stat.S_ISDIR(status.st_mode):
        raise Refused("spawn_failed", f"{path} is not a directory", path=path)
    if status.st_uid != os.geteuid():
        raise Refused("spawn_failed", f"{path} belongs to user {status.st_uid}", "use another BLOCKPTY_HOME", path=path)
    if status.st_mode & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        raise Refused("spawn_failed", f"{path} has mode {mode}, others may enter it", f"chmod 700 {path}", path=path)


@contextlib.contextmanager
def socket_address(dir_fd: int, name: str = SOCKET_NAME) -> Iterator[str]:
    """Yield a short path of the socket in the directory `dir_fd`."""
    if sys.platform == "linux":
        yield f"/proc/self/fd/{dir_fd}/{name}"
        return
    import fcntl
    import tempfile

    raw = fcntl.fcntl(dir_fd, getattr(fcntl, "F_GETPATH", 50), b"\0" * 1024)
    with tempfile.TemporaryDirectory(prefix="bp") as short:
        link = os.path.join(short, "h")
        os.symlink(raw.rstrip(b"\0").decode(), link)
        yield os.path.join(link, name)


def connect(dir_fd: int) -> socket.socket | None:
    """Return a connection to the host of this home, or None when none listens.

    Raises:
        Refused: internal, when the process behind the socket belongs to another user.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(dir_fd) as address:
            sock.connect(address)
    except OSError as error:
        sock.close()
        if error.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.ECONNRESET, errno.EAGAIN):
            return None
        raise
    if peer_uid(sock) != os.geteuid():
        sock.close()
        raise Refused("internal", "the host's socket belongs to another user")
    return sock


def peer_uid(sock: socket.socket) -> int | None:
    """The user at the other end of a unix socket; None when the system does not say."""
    if hasattr(socket, "SO_PEERCRED"):
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int(struct.unpack("iII", raw)[1])
    try:
        import ctypes

        uid, gid = ctypes.c_uint32(), ctypes.c_uint32()
        libc = ctypes.CDLL(None, use_errno=True)
        return uid.value if libc.getpeereid(sock.fileno(), ctypes.byref(uid), ctypes.byref(gid)) == 0 else None
    except (ImportError, OSError, AttributeError):
        return None
