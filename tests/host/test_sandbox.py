"""Sandboxes: attempts to get out of one, and that its shell is what the host holds, signals and ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from blockpty import Engine
from blockpty.runtime.conversation import Conversation
from tests.support.async_tests import async_test
from tests.support.policies import write_policy
from tests.support.profile import one_in_turn
from tests.support.sandboxes import METHODS, SECRET, method, place_outside, sandboxed, user_home

__all__ = ["method", "user_home"]

PYTHON: Final = "python3"


@dataclass
class Scene:
    """What lies outside of a sandbox, and what an attempt can use of it."""

    cwd: Path
    home: Path
    user: Path
    outside: Path
    process: int
    tcp: int
    udp: int
    tty: str
    reached: list[str] = field(default_factory=list)

    def fill(self, command: str) -> str:
        """Return a command with the names of the scene in it."""
        for name in ("cwd", "home", "user", "outside", "process", "tcp", "udp", "tty"):
            command = command.replace(f"@{name}@", str(getattr(self, name)))
        return command.replace("@python@", PYTHON)

    def state(self) -> dict[str, object]:
        """Return what no attempt may change."""
        found: dict[str, object] = {"reached": list(self.reached)}
        for around in (self.outside, self.user, self.home / "conversations" / "other"):
            for path in sorted(around.rglob("*")):
                about = path.lstat()
                text = path.read_text("utf-8", "replace") if path.is_file() and not path.is_symlink() else ""
                found[str(path)] = (about.st_size, text)
        with contextlib.suppress(FileNotFoundError):
            found["core"] = Path("/proc/sys/kernel/core_pattern").read_text()
        found["process"] = Path(f"/proc/{self.process}/stat").read_text().split()[2:8]
        found["etc"] = sorted(os.listdir("/etc"))
        return found


def _accept(scene_reached: list[str], listener: socket.socket, name: str) -> None:
    listener.setblocking(False)

    def arrived() -> None:
        with contextlib.suppress(OSError):
            if listener.type == socket.SOCK_DGRAM:
                listener.recv(100)
            else:
                listener.accept()[0].close()
            scene_reached.append(name)

    asyncio.get_running_loop().add_reader(listener, arrived)


@contextlib.contextmanager
def _process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, "SECRET": SECRET}, start_new_session=True) as process:
        yield process
        process.kill()


@asynccontextmanager
async def _scene(tmp_path: Path, home: Path, user_home: Path) -> AsyncIterator[Scene]:
    (cwd := tmp_path / "project").mkdir()
    with place_outside() as outside, contextlib.ExitStack() as open_files:
        (outside / "file").write_text("untouched")
        (outside / "run.sh").write_text("#!/bin/sh\n")
        os.chmod(outside / "run.sh", 0o755)
        process = open_files.enter_context(_process())
        master, slave = os.openpty()
        listeners = {
            "tcp": socket.create_server(("127.0.0.1", 0)),
            "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            "unix": socket.socket(socket.AF_UNIX),
            "abstract": socket.socket(socket.AF_UNIX),
            "home": socket.socket(socket.AF_UNIX),
        }
        listeners["udp"].bind(("127.0.0.1", 0))
        run = Path("/run") if os.access("/run", os.W_OK) else user_home
        unix = run / f"blockpty-{os.getpid()}.sock"
        listeners["unix"].bind(str(unix))
        listeners["abstract"].bind(f"\0blockpty-{os.getpid()}")
        (home / "server").mkdir(mode=0o700)
        with contextlib.chdir(home / "server"):
            listeners["home"].bind("sock")
        (home / "server" / "token").write_text(SECRET)
        other = home / "conversations" / "other"
        other.mkdir(parents=True, mode=0o700)
        (other / "note").write_text(SECRET)
        scene = Scene(
            cwd, home, user_home, outside, process.pid, listeners["tcp"].getsockname()[1],
            listeners["udp"].getsockname()[1], os.ttyname(slave),
        )  # fmt: skip
        os.symlink(unix, cwd / "unix.sock")
        try:
            for name, listener in listeners.items():
                if listener.type == socket.SOCK_STREAM:
                    listener.listen()
                _accept(scene.reached, open_files.enter_context(listener), name)
            yield scene
        finally:
            for listener in listeners.values():
                asyncio.get_running_loop().remove_reader(listener)
            os.close(master)
            os.close(slave)
            unix.unlink()


def _python(text: str) -> str:
    """Return a command that runs a Python text."""
    return f"@python@ - <<'E'\n{text}\nE"


def _connect(family: str, address: str) -> str:
    return _python(f"import socket, os\nsocket.socket(socket.{family}).connect({address})\nprint('REACHED')")


# What is tried, and the text that its output must not have; files, processes and sockets outside are compared anyway.
ATTEMPTS: Final[dict[str, str]] = {
    # writing
    "write": "echo x > @outside@/new; echo x >> @outside@/file",
    "write in the home": "echo 'touch evil' >> ~/.bashrc; echo x > @user@/.profile; mkdir ~/.config/x",
    "remove": "rm -rf @outside@; mv @outside@/file ./got; rmdir @outside@",
    "truncate": "truncate -s 0 @outside@/file; " + _python("import os; os.truncate('@outside@/file', 0)"),
    "a link in the directory": "ln -s @outside@ away; echo x > away/new; echo x >> away/file; cp -r . away/",
    "a hard link": "ln @outside@/file hard && echo x >> hard; ln -P ~/.ssh/id hard2 && cat hard2",
    "a path upwards": "echo x > ../../../../../../../..@outside@/new; cd / && echo x > .@outside@/new; cd @cwd@",
    "by way of /proc": "echo x > /proc/self/root@outside@/new; echo x > /proc/1/root@outside@/new; "
    "echo x > /proc/self/cwd/../../../../../..@outside@/new",
    "mount": "mount -o remount,rw /; mount -o remount,rw,bind /; mount --bind . @outside@; echo x > @outside@/new",
    "a user namespace": "unshare -Urm sh -c 'mount -o remount,rw,bind /; "
    "mount -t tmpfs x @outside@; echo x > @outside@/new'",
    "unmount what covers": "umount ~/.ssh; umount -l @home@; umount -l /run; cat ~/.ssh/id @home@/server/token",
    "chroot and pivot_root": "chroot / sh -c 'echo x > @outside@/new'; pivot_root . .",
    "our startup file": 'echo "touch evil" >> $__bpty_dir/rc/1/bashrc; ls $__bpty_dir/rc; touch $__bpty_dir/rc/x',
    "the command files": 'echo "touch evil" > $__bpty_dir/commands/99; echo "touch evil" > $__bpty_dir/submit; '
    "rm -f $__bpty_dir/submit; ln -sf /bin/sh $__bpty_dir/submit2",
    "our FIFO": "mkfifo $__bpty_dir/drain; mkfifo $__bpty_dir/other; rm -rf $__bpty_dir/commands",
    "the record": "echo x >> $__bpty_dir/timeline.jsonl; : > $__bpty_dir/meta.json; rm -rf $__bpty_dir/stream",
    "another conversation": "echo x >> @home@/conversations/other/note; cat @home@/conversations/other/note",
    "kernel settings": "echo '|/bin/false' > /proc/sys/kernel/core_pattern; echo b > /proc/sysrq-trigger0; "
    "echo 1 > /proc/sys/kernel/panic0; sysctl -w kernel.core_pattern=x",
    "a device": "mknod disk b 254 0 && head -c 512 disk && echo REACHED; "
    "mknod mem c 1 1 && head -c 1 mem && echo REACHED",
    "the cgroup": "mkdir /sys/fs/cgroup/x-blockpty && echo REACHED; "
    "echo $$ > /sys/fs/cgroup/cgroup.procs && echo REACHED; "
    "for f in /sys/fs/cgroup/*/cgroup.procs; do echo $$ > $f && echo REACHED; done",
    # reading
    "read keys": "cat ~/.ssh/id ~/.aws/credentials ~/.config/gh/hosts.yml ~/.netrc; tar cf - ~/.ssh | strings",
    "read the profile's own": "cat ~/own/token; cp -r ~/own . && cat own/token; grep -r canary ~/own",
    "read the server's token": "cat @home@/server/token; find @home@ -type f -name token -exec cat {} +",
    "read passwords": "cat /etc/shadow /etc/gshadow && echo REACHED",
    "read through a link": "ln -s ~/.ssh/id key; cat key; ln -s @home@/server s; cat s/token",
    "read another's /tmp": "ls /tmp/* > /dev/null; cat @user@/.netrc",
    "read another's environment": "cat /proc/@process@/environ; cat /proc/*/environ | tr '\\0' '\\n' | grep canary",
    "another's root": "cat /proc/1/root@user@/.netrc; cat /proc/@process@/root@user@/.netrc; "
    "cat /proc/@process@/cwd@user@/.netrc",
    "open descriptors": "ls -l /proc/self/fd /proc/1/fd /proc/2/fd 2>&1 | grep -v -e pts -e console -e null -e proc "
    "| grep -e socket -e host -e memfd -e master && echo REACHED",
    # the network and sockets
    "tcp": _connect("AF_INET", "('127.0.0.1', @tcp@)"),
    "tcp by bash": "echo x > /dev/tcp/127.0.0.1/@tcp@ && echo REACHED",
    "udp": _python(
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @udp@))"
    ),
    "other families": _python(
        "import socket\nfor one in (40, 38, 17, 31):\n"
        "    try: socket.socket(one, socket.SOCK_STREAM); print('REACHED')\n"
        "    except OSError: pass"
    ),
    "the server's socket": _connect("AF_UNIX", "'@home@/server/sock'"),
    "the host's socket": _connect("AF_UNIX", "'@home@/host/host.sock'"),
    "a socket in /run": _connect("AF_UNIX", "os.readlink('@cwd@/unix.sock')"),
    "an abstract socket": _connect("AF_UNIX", f"'\\0blockpty-{os.getpid()}'"),
    "variables that name sockets": "env | grep -e SSH_AUTH_SOCK -e DBUS_SESSION -e XDG_RUNTIME && echo REACHED",
    # processes
    "signal": "kill -9 @process@; kill -STOP @process@; kill -HUP @process@",
    "signal all": "sh -c 'trap \"\" TERM; kill -TERM -1'; true",
    "trace": _python(
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "own = open('/proc/1/comm').read() == 'bwrap\\n'  # it is inside as well\n"
        "for one in (@process@,) if own else (@process@, 1):\n"
        "    if libc.ptrace(16, one, 0, 0) == 0 or libc.ptrace(0x4206, one, 0, 0) == 0: print('REACHED')"
    ),
    "another's memory": "head -c 1 /proc/@process@/mem && echo REACHED; cat /proc/@process@/maps && echo REACHED",
    "another's namespaces": "nsenter -t @process@ -a true && echo REACHED; "
    "nsenter -t @process@ -m true && echo REACHED; "
    "nsenter -t @process@ -n true && echo REACHED",
    "become another user": _python(
        "import os\nfor call in (lambda: os.setuid(54321), lambda: os.setgid(54321), lambda: os.setgroups([54321])):\n"
        "    try: call(); print('REACHED')\n    except OSError: pass"
    ),
    "su and setuid bits": "cp /bin/sh ./sh2; chmod u+s sh2; chmod 4755 sh2; chmod g+s sh2; "
    "install -m 4755 /bin/sh sh3; find . -perm /6000 | grep . && echo REACHED; "
    "su -c true nobody && echo REACHED",  # words: on the system
    "set a capability": "grep -E 'Cap(Prm|Eff).*[1-9a-f]' /proc/self/status && echo REACHED; "
    "grep 'NoNewPrivs:.*0' /proc/self/status && echo REACHED",
    # terminals
    "type into the terminal": _python(
        "import fcntl\nfor number in (0x5412, 0x541c):\n"
        "    for fd in (0, open('/dev/tty').fileno()):\n"
        "        try: fcntl.ioctl(fd, number, b'\\x03' + b'x' * 8); print('REACHED')\n        except OSError: pass"
    ),
    "another terminal": "echo x > @tty@ && echo REACHED; ls /dev/pts/ptmx > /dev/null",
    "keyrings": _python(
        "import ctypes, os\nnumbers = {'x86_64': (248, 250), 'aarch64': (217, 219)}[os.uname().machine]\n"
        "libc = ctypes.CDLL(None)\n"
        "if libc.syscall(numbers[0], b'user', b'blockpty', b'x', 1, -4) > 0: print('REACHED')\n"
        "if libc.syscall(numbers[1], 0, -3, 0) > 0: print('REACHED')"
    ),
}


def test_there_are_thirty_attempts_and_more() -> None:
    assert len(ATTEMPTS) >= 30


async def _open(engine: Engine, scene: Scene, profile: str, **more: object) -> Conversation:
    return await engine.open("c1", shell="bash", cwd=str(scene.cwd), sandbox=profile, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attempt", "method"),
    [(one, method) for number, one in enumerate(ATTEMPTS) for method in one_in_turn(number, METHODS)],
    indirect=["method"],
)
@async_test
async def test_no_attempt_gets_out(attempt: str, method: str, tmp_path: Path, home: Path, user_home: Path) -> None:
    write_policy(home, f'[sandbox.tight]\nmethod = "{method}"\nhide = ["~/own"]\n')
    async with _scene(tmp_path, home, user_home) as scene, Engine(home) as engine:
        conversation = await _open(engine, scene, "tight", env={"SSH_AUTH_SOCK": "/run/x", "A": "b"})
        before = scene.state()
        ran = await conversation.run(scene.fill(ATTEMPTS[attempt]), timeout_ms=20_000)
        assert not ran.timed_out, ran.output
        printed = [line for line in ran.output.splitlines() if "File" not in line]
        assert "REACHED" not in printed, ran.output
        assert SECRET not in ran.output
        await asyncio.sleep(0)
        assert scene.state() == before
        assert not (scene.cwd / "evil").exists()
        # The shell and its record are sound.
        assert (await conversation.run("echo $A; : > made; ls made")).output == "b\nmade\n"
        assert (await conversation.status()).integrity == "ok"
        if attempt == "signal all":
            return
        assert (await conversation.verify()).clean


_SEEN: Final[dict[str, Callable[[Scene, str], bool]]] = {
    "write": lambda scene, printed: (scene.outside / "new").exists(),
    "a path upwards": lambda scene, printed: (scene.outside / "new").exists(),
    "read keys": lambda scene, printed: SECRET in printed,
    "read the profile's own": lambda scene, printed: SECRET in printed,
    "read the server's token": lambda scene, printed: SECRET in printed,
    "read another's environment": lambda scene, printed: SECRET in printed,
    "tcp": lambda scene, printed: "tcp" in scene.reached,
    "the server's socket": lambda scene, printed: "home" in scene.reached,
    "a socket in /run": lambda scene, printed: "unix" in scene.reached,
    "an abstract socket": lambda scene, printed: "abstract" in scene.reached,
    "another terminal": lambda scene, printed: "REACHED" in printed,
    # Returns when it has ended.
    "signal": lambda scene, printed: os.waitid(os.P_PID, scene.process, os.WEXITED | os.WNOWAIT) is not None,
}


@pytest.mark.parametrize("attempt", _SEEN)
@async_test
async def test_the_attempts_do_get_out_without_a_sandbox(
    attempt: str, tmp_path: Path, home: Path, user_home: Path
) -> None:
    async with _scene(tmp_path, home, user_home) as scene, Engine(home, redact=False) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(scene.cwd))
        ran = await conversation.run(scene.fill(ATTEMPTS[attempt]), timeout_ms=20_000)
        await asyncio.sleep(0)
        assert _SEEN[attempt](scene, ran.output), ran.output


@async_test
async def test_what_left_the_session_ends_with_it(method: str, tmp_path: Path, home: Path, user_home: Path) -> None:
    async with sandboxed(home, tmp_path, f'[sandbox.one]\nmethod = "{method}"\n') as conversation:
        await conversation.run("setsid sh -c 'echo $$ > pid; exec sleep 4711' & until [ -s pid ]; do :; done")
        found = await asyncio.to_thread(subprocess.run, ["pgrep", "-f", "^sleep 4711$"], capture_output=True)
        (pid,) = map(int, found.stdout.split())
        closed = await conversation.close()
        assert [(one["pid"], one["ended"]) for one in closed.outside] == [(pid, True)]
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@async_test
async def test_a_signal_to_the_shell_reaches_it(method: str, tmp_path: Path, home: Path, user_home: Path) -> None:
    async with sandboxed(home, tmp_path, f'[sandbox.one]\nmethod = "{method}"\n') as conversation:
        await conversation.kill(signal="HUP")
        assert (await conversation.wait_for({"token": "EOF"})).matched
        status = await conversation.status()
        # bubblewrap ends as the shell in it, with the status that a shell has for that.
        by_signal = {"status": None, "signal": "SIGHUP"}
        assert status.exit == (by_signal if method == "landlock" else {"status": 129, "signal": None})


@async_test
async def test_it_outlives_the_processes_of_the_host(method: str, tmp_path: Path, home: Path, user_home: Path) -> None:
    async with sandboxed(home, tmp_path, f'[sandbox.one]\nmethod = "{method}"\n') as conversation:
        before = await conversation.status()
        for name in ("recorder", "keeper", "recorder"):
            pid = json.loads((home / "host" / "pid").read_text())[name]
            assert pid > 1
            os.kill(pid, signal.SIGKILL)
            assert (await conversation.run("echo $((6 * 7))")).output == "42\n"
            # Shells outlive one of the two processes, and the other only once the first has a successor.
            while json.loads((home / "host" / "pid").read_text())[name] == pid:
                await conversation.status()
        after = await conversation.status()
        assert (after.pid, after.sandbox) == (before.pid, before.sandbox)
        assert (await conversation.run("cat ~/.ssh/id")).exit_status == 1
