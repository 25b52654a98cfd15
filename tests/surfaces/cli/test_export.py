"""Where the command line puts an export, against a recording engine."""

from __future__ import annotations

import io
import json
import stat
import sys
from pathlib import Path

import pytest

from blockpty.model.results import ExportResult
from blockpty.surfaces.cli.main import main
from blockpty.surfaces.cli.render import ResultPrinter
from tests.support.operations import RecordingEngine

SHOWN = "{}\n\u00e9^[]0;title^G\n"
DATA = "{}\n\u00e9\x1b]0;title\x07\r\n"


def run(result: ExportResult, *arguments: str) -> tuple[int, RecordingEngine]:
    engine = RecordingEngine({"export": result})
    status = main(["export", "c1", *arguments], open_engine=engine)
    sys.stdout.flush()
    return status, engine


def small() -> ExportResult:
    return ExportResult(20, "cast", (0, 20), len(DATA.encode()), DATA)


def large(directory: Path, style: str = "cast") -> ExportResult:
    path, timing = directory / "exported", directory / "timing"
    path.write_bytes(DATA.encode())
    if style == "typescript":
        timing.write_bytes(b"O 0.0 1\n")
    times = str(timing) if style == "typescript" else None
    return ExportResult(20, style, (0, 20), len(DATA.encode()), None, str(path), times)


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("options", [(), ("-o", "-")])
def test_a_pipe_gets_the_export_itself(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], size: str, options: tuple[str, ...]
) -> None:
    result = small() if size == "small" else large(tmp_path)
    status, _ = run(result, *options)
    assert (status, capfdbinary.readouterr().out) == (0, DATA.encode())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_file_is_written_and_private(tmp_path: Path, capfd: pytest.CaptureFixture[str], size: str) -> None:
    target = tmp_path / "out" / "my.cast"
    target.parent.mkdir()
    status, engine = run(small() if size == "small" else large(tmp_path), "cast3", "-o", str(target))
    assert status == 0 and engine.calls[-1][1] == ("cast3",)
    assert target.read_bytes() == DATA.encode() and stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [target.parent]
    assert str(target) in capfd.readouterr().out


def test_a_typescript_is_two_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = large(tmp_path, "typescript")
    assert run(result, "typescript")[0] == 0
    shown = capfd.readouterr().out
    assert str(tmp_path / "exported") in shown and str(tmp_path / "timing") in shown
    target = tmp_path / "my"
    assert run(result, "typescript", "-o", str(target), "--json")[0] == 0
    answer = json.loads(capfd.readouterr().out)
    assert (answer["path"], answer["timing_path"]) == (str(target), f"{target}.timing")
    assert (tmp_path / "my.timing").read_bytes() == b"O 0.0 1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my", "my.timing"]
    for words in (("typescript",), ("--format", "typescript")):
        status, engine = run(result, *words, "-o", "-")
        assert (status, engine.calls) == (2, [])


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = large(tmp_path)
    status, _ = run(result, "-o", str(tmp_path / "no" / "x"))
    assert status == 2 and "No such file" in capfd.readouterr().err
    # It is still where the engine has put it.
    assert (tmp_path / "exported").exists()


def test_json_is_the_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(small(), "--json")
    assert json.loads(capfd.readouterr().out)["data"] == DATA
    run(large(tmp_path), "--json")
    assert json.loads(capfd.readouterr().out)["path"] == str(tmp_path / "exported")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_terminal_gets_it_safely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    out = _Terminal()
    ResultPrinter(out, io.StringIO()).result("export", small(), {"conversation_id": "c1"})
    assert out.getvalue() == SHOWN
    monkeypatch.setattr(sys, "stdout", _Terminal())
    assert run(small() if size == "small" else large(tmp_path), "-o", "-")[0] == 0
    assert sys.stdout.getvalue() == SHOWN  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []
