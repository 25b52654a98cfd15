"""An sshd of a test's own on loopback, with its own keys, and a client configuration that knows only that."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


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
        for pid in self.sessions():
            os.kill(pid, signal.SIGKILL)


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


@contextmanager
def ssh_server(directory: Path, shell: Sequence[str], *, checking: str = "no", more: str = "") -> Iterator[SshServer]:
    """Run an sshd whose login shell is this command with `directory/home` as its home; skip where that cannot be."""
    server = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if server is None or shutil.which("ssh") is None or os.geteuid() != 0:
        pytest.skip("needs openssh-server, openssh-client and root")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)], check=True)
    (directory / "home").mkdir()
    (directory / "bin").mkdir()
    script = directory / "bin" / "ssh"
    script.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {directory}/client "$@"\n')
    script.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (directory / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {directory}/host\nAuthorizedKeysFile {directory}/user.pub\n"
        "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPrintMotd no\nAcceptEnv LANG LC_*\n"
        f"SetEnv HOME={directory}/home\nForceCommand cd; exec {' '.join(shell)}\n"
    )
    daemon = subprocess.Popen([server, "-D", "-e", "-f", str(directory / "sshd_config")], stderr=subprocess.PIPE)
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
