"""Local files of put-file and get-file: read and written here, against a recording engine."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from blockpty.model.results import GetFileResult
from blockpty.surfaces.cli.main import main
from tests.support.operations import RecordingEngine

CONTENT = b"\0\xff\x1b]0;title\x07\r\n"


def got(content: bytes, *, redacted: bool = False) -> RecordingEngine:
    digest = hashlib.sha256(content).hexdigest()
    exact = base64.b64encode(content).decode()
    return RecordingEngine({"get_file": GetFileResult(len(content), digest, None, exact, 20, "terminal", redacted)})


def run(engine: RecordingEngine, *arguments: str) -> int:
    status = main(arguments, open_engine=engine)
    sys.stdout.flush()
    return status


def test_the_content_of_a_local_file_is_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "local").write_bytes(CONTENT)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(CONTENT)))
    for local in (str(tmp_path / "local"), "-"):
        engine = RecordingEngine()
        assert run(engine, "put-file", "c1", "there", local, "--mode", "600") == 0
        name, args, kwargs = engine.calls[-1]
        given = {name: value for name, value in kwargs.items() if value is not None}
        assert (name, args) == ("put_file", ("there", None))
        assert given == {"data_b64": base64.b64encode(CONTENT).decode(), "mode": "600"}


def test_a_local_file_that_cannot_be_read_is_a_wrong_use(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    engine = RecordingEngine()
    assert run(engine, "put-file", "c1", "there", str(tmp_path / "missing")) == 2
    assert "cannot be read" in capfd.readouterr().err and not engine.calls
    assert run(got(CONTENT), "get-file", "c1", "there", str(tmp_path / "missing" / "x")) == 2
    assert "cannot be written" in capfd.readouterr().err
    assert run(engine, "get-file", "c1", "there", "x", "--local-path", "y") == 2
    assert "not both" in capfd.readouterr().err


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_standard_output_gets_the_bytes(capfdbinary: pytest.CaptureFixture[bytes], arguments: tuple[str, ...]) -> None:
    assert run(got(CONTENT), "get-file", "c1", "there", *arguments) == 0
    assert capfdbinary.readouterr() == (CONTENT, b"")


def test_a_local_file_gets_the_bytes_and_redaction_is_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(got(CONTENT, redacted=True), "get-file", "c1", "there", str(tmp_path / "x")) == 0
    assert (tmp_path / "x").read_bytes() == CONTENT
    shown = capfd.readouterr()
    assert hashlib.sha256(CONTENT).hexdigest() in shown.out and "secrets were redacted" in shown.err


def test_json_has_the_content_unless_it_went_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(got(CONTENT), "get-file", "c1", "there", "--json") == 0
    assert base64.b64decode(json.loads(capfd.readouterr().out)["data_b64"]) == CONTENT
    assert run(got(CONTENT), "get-file", "c1", "there", str(tmp_path / "x"), "--json") == 0
    assert json.loads(capfd.readouterr().out)["data_b64"] is None and (tmp_path / "x").read_bytes() == CONTENT
