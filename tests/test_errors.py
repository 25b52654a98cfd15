"""The errors: one class for each code, and the wire form there and back."""

from __future__ import annotations

import pytest

from blockpty import errors
from blockpty.errors import BlockptyError, error_from_code

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BlockptyError)]
# Bases, whose code is that of the most general error below them.
BASES = (BlockptyError, errors.RequestError, errors.TerminalError, errors.SpoolError)
LEAVES = [kind for kind in CLASSES if kind not in BASES]


def test_each_code_has_one_class() -> None:
    codes = [kind.code for kind in LEAVES]
    assert len(codes) == len({*codes}) and len(codes) > 20


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.code)
def test_an_error_comes_back_from_its_wire_form(kind: type[BlockptyError]) -> None:
    problem = kind("it went wrong", hint="do this", details={"path": "/x"})
    wire = problem.to_dict()
    assert wire == {
        "ok": False,
        "error": {"code": kind.code, "message": "it went wrong", "hint": "do this", "details": {"path": "/x"}},
    }
    again = error_from_code(**wire["error"])
    assert type(again) is kind and again.to_dict() == wire


def test_a_code_of_a_newer_version_is_an_internal_error() -> None:
    assert type(error_from_code("unheard_of", "x")) is errors.InternalError


def test_the_hint_stands_behind_the_message() -> None:
    assert str(errors.BadRequest("no", hint="yes")) == "no (yes)" and str(errors.BadRequest("no")) == "no"


def test_every_class_is_in_the_tree_of_the_docstring() -> None:
    for kind in CLASSES:
        assert kind.__name__ in (errors.__doc__ or ""), kind
