"""Text of a command from standard input, and keys from files."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from blockpty.surfaces.cli.inputs import STDIN, options_of, take


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Any:
    def give(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    return give


@pytest.mark.parametrize(
    ("operation", "data", "values"),
    [
        ("run", b"ls\n\n", {"command": "ls"}),
        ("paste", b"a\nb\n", {"text": "a\nb\n"}),
        ("send", b"x\n", {"data": "x\n"}),
        ("send", b"\xff\x00", {"data_b64": base64.b64encode(b"\xff\x00").decode()}),
    ],
)
def test_text_from_standard_input(operation: str, data: bytes, values: dict[str, str], stdin: Any) -> None:
    stdin(data)
    assert take(operation, {"conversation_id": "c", "from_stdin": True}) == {"conversation_id": "c", **values}


def test_a_command_has_to_be_text(stdin: Any) -> None:
    stdin(b"\xff")
    with pytest.raises(click.UsageError, match="not UTF-8"):
        take("run", {"from_stdin": True})


def test_it_comes_from_one_place(stdin: Any) -> None:
    stdin(b"x")
    with pytest.raises(click.UsageError, match="not both"):
        take("run", {"from_stdin": True, "command": "ls"})
    with pytest.raises(click.UsageError, match="not both"):
        take("send", {"from_stdin": True, "hidden": True})
    with pytest.raises(click.UsageError, match="Missing argument 'COMMAND'"):
        take("run", {})


def test_a_secret_is_not_an_agents() -> None:
    with pytest.raises(click.UsageError, match="from the user"):
        take("send", {"conversation_id": "c", "hidden": True, "author": "agent"})


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    assert take("verify", {"key": str(tmp_path / "key")}) == {"key": "secret"}
    with pytest.raises(click.UsageError, match="no key can be read"):
        take("seal", {"key": str(tmp_path / "missing")})


def test_paths_of_an_import_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    taken = take("import_recording", {"path": "a.cast", "timing": None})
    assert taken == {"path": os.path.join(tmp_path, "a.cast"), "timing": None}


def test_only_what_takes_text_has_the_options() -> None:
    named = {operation: {option.name for option in options_of(operation)} for operation in (*STDIN, "list", "export")}
    assert all("from_stdin" in named[operation] for operation in STDIN)
    assert "hidden" in named["send"] and "hidden" not in named["run"] and not named["list"]
    assert named["export"]
