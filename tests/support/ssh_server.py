"""An sshd of a test's own on loopback, with its own keys, and a client configuration that knows only that."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_port


@dataclass
class SshServer:
    """A running sshd; `environment` is that of a client: its `ssh` reads the test's configuration only."""

    directory: Path
    port: int
    daemon: subprocess.Popen[bytes]

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.directory}/bin:{os.environ['PATH']}"}

    def configure(self, text: str) -> None:
        """Have the client read this as its configuration."""
        (self.directory / "client").write_text(text)

    def sessions(self) -> list[int]:
        """Return the processes of this sshd that serve a connection."""
        found = Path(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children").read_text().split()
        return [int(pid) for pid in found]

    def cut(self) -> None:
        """End every connection with nothing said, as a machine that goes down does."""
        for pid in self._processes(self.daemon.pid):
            # One of a connection ends by itself when the other has.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """End every connection, and let the client make no other one inside."""
        program = self.directory / "bin" / "ssh"
        way = program.read_text()
        program.write_text("#!/bin/sh\nexit 255\n")
        try:
            self.cut()
            yield
        finally:
            program.write_text(way)

    @contextmanager
    def no_client(self) -> Iterator[None]:
        """Have no `ssh` inside, as while it is being updated."""
        program = self.directory / "bin" / "ssh"
        aside = program.rename(self.directory / "bin" / "aside")
        try:
            yield
        finally:
            aside.rename(program)

    def _processes(self, parent: int) -> list[int]:
        """Return the processes of sshd below one: of one connection there may be two, and either keeps it."""
        found = []
        with suppress(OSError):
            for pid in map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()):
                if Path(f"/proc/{pid}/comm").read_text().startswith("sshd"):
                    found += [pid, *self._processes(pid)]
        return found


KNOWN = """
Host *
    User {user}
    Port {port}
    IdentityFile {directory}/user
    IdentitiesOnly yes
    UserKnownHostsFile {directory}/known_hosts
    StrictHostKeyChecking {checking}
    {more}
"""


RUNS_COMMANDS = ("sh", "-c", '"${SSH_ORIGINAL_COMMAND:-exec bash --norc -i}"')
"""A login shell that runs what the client asks for; bash where it asks for nothing."""


def install(server: SshServer) -> Path:
    """Install this blockpty for the user of a server; return the directory of that user's conversations."""
    program = server.directory / "home" / ".local" / "bin" / "blockpty"
    program.parent.mkdir(parents=True)
    root = Path(__file__).parents[2]
    program.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -m blockpty "$@"\n')
    program.chmod(0o755)
    return server.directory / "home" / ".local" / "state" / "blockpty" / "conversations"


@contextmanager
def ssh_server(
    directory: Path, shell: Sequence[str], *, checking: str = "no", more: str = "", address: str = "127.0.0.1",
    namespaces: tuple[str, str] | None = None, start: Path | None = None,
) -> Iterator[SshServer]:  # fmt: skip
    """Run an sshd whose login shell is this command with `directory/home` as its home; skip where that cannot be.

    `namespaces`: those of the network in which the client and the server are. `start`: where the shell starts, if not
    in its home.
    """
    inside = [[] if namespaces is None else ["ip", "netns", "exec", name] for name in namespaces or ("", "")]
    server = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if server is None or shutil.which("ssh") is None or os.geteuid() != 0:
        pytest.skip("needs openssh-server, openssh-client and root")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)], check=True)
    (directory / "home").mkdir()
    (directory / "bin").mkdir()
    script = directory / "bin" / "ssh"
    client = " ".join([*inside[0], str(shutil.which("ssh"))])
    script.write_text(f'#!/bin/sh\nexec {client} -F {directory}/client "$@"\n')
    script.chmod(0o755)
    port = free_port()
    (directory / "sshd_config").write_text(
        f"ListenAddress {address}:{port}\nHostKey {directory}/host\nAuthorizedKeysFile {directory}/user.pub\n"
        "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPrintMotd no\nAcceptEnv LANG LC_*\n"
        f"SetEnv HOME={directory}/home\nForceCommand cd {start or ''}; exec {' '.join(shell)}\n"
    )
    command = [*inside[1], server, "-D", "-e", "-f", str(directory / "sshd_config")]
    daemon = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        assert daemon.stderr is not None
        for line in daemon.stderr:
            if b"Server listening" in line:
                break
        else:
            pytest.skip("sshd does not start here")
        made = SshServer(directory, port, daemon)
        made.configure(KNOWN.format(user="root", port=port, directory=directory, checking=checking, more=more))
        yield made
    finally:
        daemon.kill()
        daemon.wait()
        if daemon.stderr is not None:
            daemon.stderr.close()
