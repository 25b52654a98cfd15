"""The pager of long text: the user's own, and none where the text goes elsewhere."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest

from blockpty.surfaces.cli.pager import Pager, chosen_pager


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("value", "pager"), [("most -s", "most -s"), ("", None), ("cat", None), (" cat ", None)])
def test_the_pager_is_the_users(value: str, pager: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", value)
    assert chosen_pager() == pager


def test_text_for_a_file_is_not_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "exit 7")
    out = io.StringIO()
    with Pager(out, wanted=True) as pager:
        assert not pager.colour and pager.write("text")
    assert out.getvalue() == "text"


def test_text_for_a_terminal_goes_into_the_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", f"cat > {tmp_path}/shown; echo $LESS > {tmp_path}/less")
    monkeypatch.delenv("LESS", raising=False)
    before, out = signal.getsignal(signal.SIGINT), Terminal()
    with Pager(out, wanted=True) as pager:
        assert pager.write("é\n") and signal.getsignal(signal.SIGINT) is not before
    assert (tmp_path / "shown").read_text() == "é\n" and (tmp_path / "less").read_text() == "FRX\n"
    assert signal.getsignal(signal.SIGINT) is before and out.getvalue() == ""


def test_a_pager_that_is_left_early_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "true")
    with Pager(Terminal(), wanted=True) as pager:
        while pager.write("x" * 100_000):
            pass
