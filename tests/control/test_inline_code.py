"""Short program texts: the everyday one is harmless, one that runs, deletes or evaluates is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.control.inline_code import is_harmless

HARMLESS = {
    "python": [
        "print(1)", "import os; print(os.environ['PATH'])", "import re; re.compile('a')", "open('a', 'w').write('b')",
        "from pathlib import Path; print(Path('a').read_text())", "x = [1]; x.remove(1)", "print(__name__)",
    ],
    "perl": ["s/a/b/g", "s|a|b|; s/c/$1/", "print if /error/", "tr/a-z/A-Z/; print", "print", "s{a/b}{c/d}g"],
    "node": ["console.log(1 + 1)", "require('./package.json').version", "process.versions.node", "[1].map((x) => x)"],
    "ruby": ["puts 1 + 1", "p [1, 2].sum"],
    "awk": ["{print $1}", "/a|b/ {n++} END {print n}", "$1 > 3 || $2 == \"x\"", '{ print "a | b" }',
            "{ print $1 / 2 }", "$1 ~ /systemd/ { n += $2 / 1024 } END { print n }", "# close(x)\n{ print }"],
    "sed": ["s/a/b/", "1,5d", "/^e/d", "s|/e|/f|g", "$!N;s/\\n/ /", "s/the/THE/g;s/one/ONE/", "s/x/e/"],
}  # fmt: skip
NOT = {
    "python": [
        "import os; os.system('x')", "import os; os.remove('x')", "import os as q; q.remove('x')", "from os import *",
        "from shutil import rmtree", "exec('x')", "eval('x')", "open('/dev/sda', 'wb')", "getattr(x, y)",
        "not python at all",
        "import timeit; timeit.timeit('__import__(\"os\")')", "().__class__.__bases__", "import subprocess",
        "import sys; sys.modules['os'].popen('x')", "__builtins__", "(" * 5000, "import importlib as i",
        "-" * 99999 + "1",
    ],
    "perl": ["system('x')", "`x`", "s/a/b/e", "s/a/`x`/", "s{a}{b}e", "unlink 'a'", "print `x`", "print $ENV{`x`}",
        "do 'x'", "print <x>"],
    "node": ["require('child_process')", "eval('x')", "require('fs').rmSync('x')", "this.constructor", "import('x')"],
    "ruby": ["`x`", "system 'x'", "File.delete 'x'", "%x(x)"],
    "awk": ["BEGIN { system(\"x\") }", "{ print | \"sh\" }", "\"x\" | getline", "@load \"x\"",
            'BEGIN { x = 4 / 2; y = "/"; system("x"); z = "a" / 1 }', 'BEGIN { a[1] /2; b = "/"; system("x") } #"',
            'BEGIN { "a" / 2; b = "/"; system("x"); "c" / 1 }', '# it"s\nBEGIN { system("x") } #"',
            '{ print /"/; print "x" | "sh" }', 'BEGIN { x = 4 / 2; y = "/"; print "x" | "sh"; z = 4 / 1 }',
            '{ print "x" | "sh" }',
            '{ print $0 | "sort" }', '{ @f("x") }'],
    "sed": ["s/a/b/e", "e", "1e ls", "s/a/b/ge", "/x/e ls", "s|a|b|e", "p;e ls", "s/a/b/;s/c/d/e"],
    "php": ["echo 1;"], "lua": ["print(1)"], "tclsh": ["puts 1"],
}  # fmt: skip


@pytest.mark.parametrize(("language", "code"), [(name, code) for name, codes in HARMLESS.items() for code in codes])
def test_harmless(language: str, code: str) -> None:
    assert is_harmless(language, code)


@pytest.mark.parametrize(("language", "code"), [(name, code) for name, codes in NOT.items() for code in codes])
def test_not_harmless(language: str, code: str) -> None:
    assert not is_harmless(language, code)


def test_too_long_a_text_is_not_harmless() -> None:
    assert not is_harmless("python", "x = 1\n" * 20_000)


BEHIND = {
    "python": "\nimport os; os.system('x')", "perl": ";system('x')", "node": "\nrequire('child_process')",
    "ruby": "\n`x`", "awk": '\nBEGIN { system("x") }', "sed": "\n1e x", "php": "", "lua": "", "tclsh": "",
}  # fmt: skip


@given(st.sampled_from([*BEHIND]), st.text() | st.text("'\"/\\|{}()$#\n ab=;", max_size=40))
def test_no_text_hides_what_stands_behind_it(language: str, code: str) -> None:
    assert not is_harmless(language, code + BEHIND[language])
