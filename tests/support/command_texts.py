"""The texts in tests/control/data: ordinary ones, as people and agents type them, and ways around a rule."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "control" / "data"
CWD = "/home/me/proj"
HOME = "/home/me"


def lines(name: str) -> list[str]:
    """Return a file's lines, each a text of its own."""
    return (DATA / name).read_text("utf-8").splitlines()


def texts(name: str) -> list[str]:
    """Return a file's texts, between lines of %%."""
    return (DATA / name).read_text("utf-8").removesuffix("\n").split("\n%%\n")
