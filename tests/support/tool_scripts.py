"""Scripts of `tools/` as modules: one without a suffix is not found by an import."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

TOP = Path(__file__).resolve().parents[2]


def load_tool(name: str) -> ModuleType:
    """Return a script of `tools/` as a module of its own."""
    loader = SourceFileLoader(f"tools_{name}", str(TOP / "tools" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks for its module by name.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


layout = load_tool("layout")
