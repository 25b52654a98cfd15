"""tools/layout as a module: a script without a suffix is not found by an import."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

TOP = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    loader = SourceFileLoader("tools_layout", str(TOP / "tools" / "layout"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks for its module by name.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


layout = _load()
