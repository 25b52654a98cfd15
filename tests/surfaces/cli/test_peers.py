"""blockpty peers: servers are added, listed and removed, and no token is shown."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from blockpty.surfaces.cli.main import main
from blockpty.surfaces.private_files import server_directory, write_private


@pytest.mark.parametrize("as_json", [True, False])
def test_peers_are_added_listed_and_removed_on_the_command_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    def run(*words: str, token: str = "") -> int:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{token}\n"))
        return main(["peers", *words, "--home", str(home), *(["--json"] if as_json else [])])

    path = server_directory(home) / "peers"
    write_private(path, b"# of others\n")
    first, second, token = "https://build-1.example.org:7717", "http://127.0.0.1:7717", "t" * 43
    assert run("add", first, token="u" * 43) == run("add", second, token=token) == run("add", first, token=token) == 0
    assert path.read_text() == f"# of others\n{second} {token}\n{first} {token}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    for address in ("http://build-1.example.org:7717", "build-1", "https://a b", "https://me@host", "https://h/?a=b"):
        assert run("add", address, token=token) == 2
    for wrong in ("", "two words of it all", "short"):
        assert run("add", first, token=wrong) == 2
    assert run("remove", "https://build-2.example.org") == 1
    capsys.readouterr()
    assert run("list") == 0
    said = capsys.readouterr().out
    assert said.split() == [second, first] if not as_json else json.loads(said)["peers"] == [second, first]
    assert run("remove", first) == 0 and path.read_text() == f"# of others\n{second} {token}\n"
    assert token not in capsys.readouterr().out + said
