"""The build of the page: when it is due, and what may be in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import hatch_build
from tests.support.profile import LONG

_CHECKOUT = Path(hatch_build.__file__).parent
_PAGE = _CHECKOUT / hatch_build.BUILT
# Each of them makes text into markup or into a program.
_DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|createContextualFragment"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / hatch_build.SOURCES / "node_modules").mkdir(parents=True)
    (tmp_path / hatch_build.SOURCES / "main.ts").write_text("one")
    (tmp_path / hatch_build.BUILT).mkdir()
    (tmp_path / hatch_build.BUILT / "index.html").write_text("<!doctype html>")
    (tmp_path / hatch_build.BUILT / hatch_build.DIGEST).write_text(hatch_build.digest(tmp_path) + "\n")
    return tmp_path


def test_a_page_is_built_again_only_when_its_sources_have_changed(checkout: Path) -> None:
    assert hatch_build.is_current(checkout)
    (checkout / hatch_build.SOURCES / "node_modules" / "x.js").write_text("installed")
    assert hatch_build.is_current(checkout)
    source = checkout / hatch_build.SOURCES / "main.ts"
    source.rename(source.with_name("other.ts"))
    assert not hatch_build.is_current(checkout)
    source.with_name("other.ts").rename(source)
    assert hatch_build.is_current(checkout)
    source.write_text("two")
    assert not hatch_build.is_current(checkout)
    (checkout / hatch_build.BUILT / hatch_build.DIGEST).unlink()
    assert not hatch_build.is_current(checkout)


def test_a_source_distribution_needs_no_node(checkout: Path) -> None:
    (checkout / hatch_build.SOURCES).rename(checkout / "elsewhere")
    assert hatch_build.is_current(checkout)
    (checkout / hatch_build.BUILT / "index.html").unlink()
    assert not hatch_build.is_current(checkout)


def test_the_page_can_be_left_out(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook, wanted = SimpleNamespace(root=str(checkout)), {"artifacts": list[str]()}
    hatch_build.PageHook.initialize(hook, "standard", wanted)
    assert wanted["artifacts"] == ["/blockpty/_page/"] and hatch_build.PageHook.dependencies(hook) == []
    (checkout / hatch_build.SOURCES / "main.ts").write_text("two")
    monkeypatch.setenv("BLOCKPTY_NO_PAGE", "1")
    wanted = {"artifacts": []}
    hatch_build.PageHook.initialize(hook, "standard", wanted)
    assert wanted["artifacts"] == [] and hatch_build.PageHook.dependencies(hook) == []


def test_a_wheel_without_its_page_is_not_made_by_accident(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(root: Path) -> None:
        raise OSError("no network")

    monkeypatch.setattr(hatch_build, "build", fails)
    (checkout / hatch_build.SOURCES / "main.ts").write_text("two")
    hook, wanted = SimpleNamespace(root=str(checkout)), {"artifacts": list[str]()}
    with pytest.raises(OSError, match="no network"):
        hatch_build.PageHook.initialize(hook, "standard", wanted)
    hatch_build.PageHook.initialize(hook, "editable", wanted)
    assert wanted["artifacts"] == []


def test_no_source_makes_text_into_markup() -> None:
    found = [
        f"{path.relative_to(_CHECKOUT)}: {match[0]}"
        for path in sorted((_CHECKOUT / hatch_build.SOURCES / "src").rglob("*.ts*"))
        for match in _DANGEROUS.finditer(path.read_text())
    ]
    assert found == []


@pytest.mark.skipif(not (_PAGE / "index.html").exists(), reason="the page was not built: python hatch_build.py")
def test_the_built_page_has_licences_and_nothing_from_elsewhere() -> None:
    licences = (_PAGE / "licences.txt").read_text() + (_PAGE / "font-licences.txt").read_text()
    for bundled in ("preact", "@preact/signals", "@xterm/xterm", "fontsource-variable/inter", "jetbrains-mono"):
        assert bundled in licences
    assert "SIL Open Font License" in licences
    assert not list(_PAGE.rglob("*.map"))
    for path in _PAGE.rglob("*.html"):
        # Only scripts and styles of its own, and none in the document itself.
        assert not re.search(r"(?:src|href)=\"(?!\./assets/)|<script(?![^>]*\bsrc=)|<style|\son\w+=", path.read_text())
    for path in _PAGE.rglob("*.js"):
        text = path.read_text()
        assert "sourceMappingURL" not in text and not re.search(r"\beval\(|new Function\(", text)


@pytest.mark.skipif(not LONG, reason="builds the page twice, from what npm fetches; BLOCKPTY_TORTURE=long does it")
def test_two_builds_are_the_same_to_the_byte(tmp_path: Path) -> None:
    built = []
    for name in ("one", "other"):
        root = tmp_path / name
        shutil.copytree(_CHECKOUT / hatch_build.SOURCES, root / hatch_build.SOURCES)
        hatch_build.build(root)
        page = root / hatch_build.BUILT
        built.append({str(path.relative_to(page)): path.read_bytes() for path in page.rglob("*") if path.is_file()})
    assert built[0] == built[1] and len(built[0]) > 5
