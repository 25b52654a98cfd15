"""The JSON form of results, there and back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field

from blockpty.model import result
from blockpty.model.block import Block
from blockpty.model.result import Result

BLOCK = Block(
    block_id="b1", seq=1, kind="command", cmd="ls", cwd="/", cwd_b64=None, ts_begin=1, ts_end=2, duration_ms=1,
    state="ended", exit_status=0, signal=None, span=(0, 5), out_path=None, out_bytes=0, parts=1, author="agent",
    session_id=None,
)  # fmt: skip


class Inner(Struct, frozen=True):
    place: tuple[int, int]


class Sample(Result, frozen=True):
    block: Block
    span: tuple[int, int] | None
    inner: list[Inner]
    notes: dict[str, Any] = field(default_factory=dict)


def test_nested_values_become_plain_ones() -> None:
    content = Sample(BLOCK, (1, 2), [Inner((3, 4))], {"a": (5,)}).to_dict()
    assert content == {
        "ok": True, "block": BLOCK.to_dict(), "span": [1, 2], "inner": [{"place": [3, 4]}], "notes": {"a": [5]},
    }  # fmt: skip


def test_blocks_and_spans_come_back() -> None:
    content = Sample(BLOCK, (1, 2), [], {}).to_dict()
    again = Sample.from_dict(content)
    assert (again.block, again.span) == (BLOCK, (1, 2))
    assert Sample.from_dict({**content, "span": None}).span is None


def test_another_version_may_have_more_and_lack_some() -> None:
    content = Sample(BLOCK, None, [], {}).to_dict()
    del content["notes"]
    assert Sample.from_dict({**content, "unheard_of": 1}).notes == {}


# Run in an interpreter of its own, as a command does that imports one kind of results and no other.
ALONE = """
import importlib, re, sys
from msgspec import Struct
from blockpty.model.result import REVIVED
module = importlib.import_module(f"blockpty.model.{sys.argv[1]}")
for made in vars(module).values():
    if isinstance(made, type) and issubclass(made, Struct) and made.__module__ == module.__name__:
        for name, kind in made.__annotations__.items():
            others = {"None", "Any", "Literal", "Class", "Var"}
            if kind not in REVIVED and set(re.findall("[A-Z][a-z]+", kind)) - others:
                print(made.__name__, name, kind)
"""
MODULES = sorted(path.stem for path in Path(result.__file__).parent.glob("*_results.py"))


@pytest.mark.parametrize("module", MODULES)
def test_each_module_of_results_can_make_its_own_again_alone(module: str) -> None:
    found = subprocess.run([sys.executable, "-c", ALONE, module], capture_output=True, text=True, check=True)
    assert found.stdout == ""
