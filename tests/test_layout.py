"""tools/layout counts what it says that it counts, on a small package made for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tool_scripts import layout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    directory = tmp_path / "pack"
    sources = {
        "__init__.py": "",
        "low.py": "class Shared:\n    pass\n",
        "a/__init__.py": "from pack.a.one import run\n",
        "a/one.py": "import pack.low\nfrom pack.a import two\n\ndef run() -> None:\n    pass\n",
        "a/two.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.a.three import three\n",
        "a/three.py": "from pack.a.one import run\ndef three():\n    import pack.a.four\n",
        "a/four.py": "from pack.a.three import three\nclass Shared: ...\nclass _Hidden: ...\n",
        "a/shape.py": "class Shape:\n    def area(self):\n        'Only named.'\n    def name(self): ...\n",
        "a/kept.py": "class Kept:\n    def __init__(self, one):\n        self.one = one\n        self.all: list = []\n",
        "a/made.py": "class Made:\n    def __init__(self, one):\n        self.one = list(one)\n",
        "b/one.py": "import pack.b.other, pack.missing\nclass _Hidden: ...\n",
        "b/other.py": "try:\n    from pack.b.one import x\nexcept ImportError:\n    pass\n",
    }
    for name, source in sources.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return directory


def test_circles(package: Path) -> None:
    modules = layout.read_package(package)
    graph = layout.import_graph(modules)
    assert graph["pack.a.one"] == {"pack.low", "pack.a.two"}
    assert layout.circles(graph) == [["pack.a.one", "pack.a.three", "pack.a.two"], ["pack.b.one", "pack.b.other"]]
    assert layout.circles(layout.import_graph(modules, types=False)) == [["pack.b.one", "pack.b.other"]]
    way = layout.shortest_circle(graph, ["pack.a.one", "pack.a.three", "pack.a.two"])
    assert way == ["pack.a.one", "pack.a.two", "pack.a.three", "pack.a.one"]


def test_names_that_occur_twice(package: Path) -> None:
    modules = layout.read_package(package)
    assert layout.repeated_classes(modules) == {"Shared": ["pack.a.four", "pack.low"]}
    assert layout.repeated_modules(modules) == {"one": ["pack.a.one", "pack.b.one"]}


def test_modules_without_a_test(package: Path, tmp_path: Path) -> None:
    (tmp_path / "tests" / "a").mkdir(parents=True)
    (tmp_path / "tests" / "a" / "test_one.py").write_text("")
    assert layout.without_test(layout.read_package(package), tmp_path / "tests") == ["pack.a.made", "pack.a.three"]


def test_every_module_that_does_something_has_a_test_of_its_name() -> None:
    assert layout.without_test(layout.read_package(layout.TOP / "blockpty"), layout.TOP / "tests") == []


def test_lines_of_docs(tmp_path: Path) -> None:
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    (tmp_path / "README.md").write_text("x" * 120 + "\n")
    (tmp_path / "docs" / "how-to" / "page.md").write_text("short\n" + "x" * 121 + "\n")
    assert layout.long_lines(tmp_path) == ["docs/how-to/page.md:2"]


def test_it_prints_every_count(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["tools/layout"])
    assert layout.main() == 0
    printed = capsys.readouterr().out
    for label in ("files", "median lines", "import circles", "class names", "module names", "lines of docs"):
        assert label in printed
