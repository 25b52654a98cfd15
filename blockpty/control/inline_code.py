"""Program texts on a command line: whether a short text in another language runs, deletes or evaluates something.

Rules of this file: pure; a text that is not understood is not harmless. This knows a few words of each language and
no more: it tells the everyday one-liner from the rest, and what it does not know has to be asked about.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final

_LONGEST: Final = 65_536
_PYTHON_CALLS: Final = frozenset({
    "exec", "eval", "compile", "__import__", "getattr", "setattr", "globals", "locals", "vars", "breakpoint", "delattr",
    "system", "popen", "rmtree", "unlink", "rmdir", "removedirs", "truncate", "kill", "killpg", "fork", "forkpty",
    "posix_spawn", "posix_spawnp", "startfile", "check_output", "check_call", "getoutput", "getstatusoutput",
    "import_module", "run_path", "run_module", "create_subprocess_exec", "create_subprocess_shell", "chmod", "chown",
    "subprocess_exec", "subprocess_shell", "attrgetter", "methodcaller", "load_module", "exec_module", "interact",
})  # fmt: skip
_PYTHON_MODULES: Final = frozenset({
    "subprocess", "pty", "ctypes", "cffi", "importlib", "runpy", "code", "codeop", "multiprocessing", "pickle", "gc",
    "marshal", "builtins", "imp", "posix", "sh", "plumbum", "pexpect", "ptyprocess", "fabric", "invoke", "send2trash",
    "dill", "inspect", "types", "shelve", "cProfile", "profile", "pdb", "bdb", "trace", "pydoc", "pipes", "mailcap",
    "distutils", "webbrowser", "antigravity", "zipimport", "nt",
})  # fmt: skip
_PYTHON_DUNDERS: Final = frozenset({
    "__version__", "__name__", "__file__", "__doc__", "__path__", "__len__", "__all__", "__init__",
})  # fmt: skip
_PYTHON_TEXT: Final = re.compile(
    r"/dev/(?!null|std|tty|u?random)|/proc/sys|\b(?:system|popen|rmtree|exec|eval|__import__)\s*\("
)
_UNKNOWN_NAME: Final = "_unknown_"
"""What stands in Python for text that only the shell knows; as a statement of its own it may be any program."""
_PERL: Final = re.compile(
    r"""(?:s([/|\#!,])(?:(?!\1).|\\.)*\1(?:(?!\1)(?:[^$@`\\]|\\.|\$[0-9&]))*\1[gimsx]*"""
    r"""|s\{[^{}]*\}\{[^{}$@`]*\}[gimsx]*|tr/[^/]*/[^/]*/[a-z]*|y/[^/]*/[^/]*/[a-z]*"""
    r"""|print(?:\s+(?:\$[_.0-9]|"[^"$@`]*"))?(?:\s+(?:if|unless)\s+/[^/$@`(?]*/i?)?|chomp|\s|;)+"""
)
_NODE_PLAIN: Final = re.compile(
    r"""require\(\s*(['"])(?:\.{0,2}/[\w./@-]+\.json|[\w@/-]+/package\.json|(?:node:)?(?:fs|os|path|url|util|crypto))\1\s*\)"""
    r"|process\.(?:versions?(?:\.\w+)?|platform|arch|cwd\(\)|argv|env\.\w+|stdout\.write)"
)
_NODE_BAD: Final = re.compile(
    r"require|import|process|child_process|\beval\b|Function|constructor|globalThis|global\b|exec|spawn|unlink|rmdir"
    r"|\brm\b|rmSync|truncate|prototype|Reflect|Proxy|\bthis\b|\bwith\b|\[\s*['\"`]|\\x|\\u|module|bind|chmod|rename"
)
_RUBY_BAD: Final = re.compile(
    r"`|%x|system|exec|spawn|eval|open|send|File|Dir|IO|fork|require|load|Kernel|Process|method|const|\btrap\b"
)
_AWK_BAD: Final = re.compile(r"\bsystem\s*\(|getline|@\s*(?:load|include|\w+\s*\()|print[^;}]*>\s*\"/dev/(?!std)")
_AWK_PIPE: Final = re.compile(r"\||close|fflush\s*\(")
_AWK_TEXT: Final = r'"(?:[^"\\\n]|\\.)*"'
_AWK_PATTERN: Final = r"/(?:[^/\n\\]|\\.)*/|\|\||#[^\n]*"
_AWK_PLAIN: Final = (
    re.compile(f"{_AWK_TEXT}|{_AWK_PATTERN}"),
    re.compile(rf"(?<=[\w)\]$])\s*/|{_AWK_TEXT}(?:\s*/)?|{_AWK_PATTERN}"),
)
"""What is no pipe in awk: texts, patterns, comments and a logical or; a slash behind a value may be a division."""
_SED_BAD: Final = re.compile(
    r"(?:^|[;\n{}!]|[0-9$/,])\s*e(?:\s|$)|(?<=[/|#,:!@%~_])[gpimIM0-9]*e[gpimIMw0-9]*(?:\s*[;}\n]|\s*$)"
)


def is_harmless(language: str, code: str, flags: str = "") -> bool:
    """Return whether nothing in a text is known to run a program, delete a file or evaluate code."""
    if len(code) > _LONGEST:
        return False
    if language in ("python", "pypy"):
        return _python(code)
    if "\0" in code and language not in ("awk", "sed"):
        return False
    if language == "perl":
        return _PERL.fullmatch(code) is not None and not set(flags) - set("pniwlae0")
    if language in ("node", "nodejs", "bun"):
        return _NODE_BAD.search(_NODE_PLAIN.sub("", code)) is None
    if language == "ruby":
        return _RUBY_BAD.search(code) is None
    if language == "awk":
        return _AWK_BAD.search(code) is None and not any(_AWK_PIPE.search(one.sub("", code)) for one in _AWK_PLAIN)
    if language == "sed":
        return _sed(code)
    return False


def _sed(code: str) -> bool:
    """Whether a script has no `e` command and no `e` flag; substitutions are read with their own delimiter."""
    if "e" not in code:
        return True
    plain = re.fullmatch(r"[0-9,$]*s(.)((?:(?!\1)[^\\]|\\.)*)\1((?:(?!\1)[^\\]|\\.)*)\1([gpiImM0-9]*)", code, re.DOTALL)
    return plain is not None or _SED_BAD.search(code) is None


def _python(code: str) -> bool:
    code = re.sub("\0+", _UNKNOWN_NAME, code)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
        return all(_plain_node(node) for node in ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _plain_node(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == _UNKNOWN_NAME:
        return False
    if isinstance(node, ast.Import):
        return not any(alias.name.split(".")[0] in _PYTHON_MODULES for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        if (node.module or "").split(".")[0] in _PYTHON_MODULES:
            return False
        return not any(
            _is_call(alias.name)
            or (alias.name == "*" and node.module in ("os", "shutil"))
            or (alias.name in ("remove", "move", "run"))
            for alias in node.names
        )
    if isinstance(node, ast.Attribute):
        if node.attr == "remove" and isinstance(node.value, ast.Name) and node.value.id in ("os", "o", "path"):
            return False
        if node.attr.startswith("__"):
            return node.attr in _PYTHON_DUNDERS
        return node.attr == "compile" or not _is_call(node.attr)
    if isinstance(node, ast.Name):
        return not _is_call(node.id) and node.id not in ("__builtins__", "__loader__", "__spec__")
    if isinstance(node, ast.alias):
        return not (node.name == "os" and node.asname not in (None, "o", "path"))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value not in _PYTHON_CALLS and _PYTHON_TEXT.search(node.value) is None
    return True


def _is_call(name: str) -> bool:
    return (
        name in _PYTHON_CALLS
        or name in _PYTHON_MODULES - {"types", "code", "inspect", "invoke", "profile", "trace", "pipes", "nt"}
        or re.fullmatch(r"(?:exec|spawn)[lvpe]+", name) is not None
    )
