"""One prompt cycle of each shell: from `:`, submitted, to the next prompt, with our hooks and without them.

With hooks the command is submitted as the engine does it: our key is typed, and the line editor loads the text from a
file. Without them `:` and Enter are typed. What the hooks cost is the difference of the two medians of a round,
in which the shells take turns. Besides the shells on PATH also those that `tools/shells` has fetched into the directory
that BLOCKPTY_SHELLS names.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.report import Row, Run, median, skipped
from bench.terminals import CHUNK, PROMPT, on_terminal, read_some
from blockpty.engine.loading import KEYS
from blockpty.host.shells import plan

# Microseconds that the hooks may add to one cycle.
AIMS_US = {"bash": 80, "zsh": 100, "fish": 150}
WARM_UP = 50
NOTE = (
    "prompt: `:`, submitted by our key with hooks, typed without them; written and read in a blocking loop on an equal"
    " terminal, until all of the next prompt is there; same startup file, taking turns cycle by cycle; median of 150,"
    " then the median and the range over the rounds; no recorder, no engine"
)
_RC = {
    "bash": (".bashrc", f"PS1='{PROMPT.decode()}'\n"),
    "zsh": (".zshrc", f"PS1='{PROMPT.decode()}'\n"),
    # fish's title costs seventeen command substitutions in each cycle, and each waits for another thread: on a machine
    # with something else to do that is milliseconds up and down.
    "fish": (
        ".config/fish/config.fish",
        f"function fish_prompt; printf '{PROMPT.decode()}'; end\nfunction fish_title; end\nset fish_greeting\n",
    ),
}
# Where one of these is missing, fish's first start reads all manual pages in the background, for minutes.
_READ = {"fish": (".local/share/fish/generated_completions", ".cache/fish/generated_completions")}
# The last thing that a shell prints before it reads: zsh switches bracketed paste on, fish goes behind its prompt.
_LAST = {"zsh": b"\x1b[?2004h", "fish": b"\x1b[7C"}
# What fish 4 asks and waits for: before its first prompt, since 4.9 before each.
_QUESTION, _ANSWER = b"\x1b[0c", b"\x1b[?62c"


def measure(run: Run) -> list[Row]:
    """Compare every shell that is here with itself."""
    rows = []
    for name, path in _shells():
        rows.append(_compared(run, name, path))
    present = {row.what.split()[0] for row in rows}
    return rows + [skipped("prompt", name, "it is not installed") for name in AIMS_US if name not in present]


def _shells() -> Iterator[tuple[str, str]]:
    for name in AIMS_US:
        path = shutil.which(name)
        if path is not None:
            yield name, path
    folder = os.environ.get("BLOCKPTY_SHELLS")
    if folder:
        for path in sorted(Path(folder).glob("*/bin/*")):
            if path.name in AIMS_US and os.access(path, os.X_OK):
                yield path.name, str(path.absolute())


def _compared(run: Run, name: str, path: str) -> Row:
    title = f"{name} {_version(name, path)}"
    place = run.place / title.replace(" ", "-")
    place.mkdir(parents=True)
    file, text = _RC[name]
    (place / file).parent.mkdir(parents=True, exist_ok=True)
    (place / file).write_text(text)
    for folder in _READ.get(name, ()):
        (place / folder).mkdir(parents=True)
    modules = [str(folder) for folder in Path(path).parent.parent.glob("lib/*/zsh/*")] if name == "zsh" else []
    if modules:
        # Without it a fetched zsh does not find its own parts.
        (place / ".zshenv").write_text(f"module_path=({' '.join(modules)})\n")
    inherited = {**os.environ, "HOME": str(place)}
    made = plan(path, directory=str(place), instance=1, nonce="A" * 22, login=False, inherited=inherited)
    if not made.files:
        return skipped("prompt", title, "it has no hooks")
    for relative, content in made.files:
        (place / relative).parent.mkdir(parents=True, exist_ok=True)
        (place / relative).write_bytes(content)
    (place / "submit").write_bytes(b":")
    bare_env = {"HOME": str(place), **({"ZDOTDIR": str(place)} if name == "zsh" else {})}
    per_round = run.count(150, 20)
    added, with_hooks, without = [], [], []
    with contextlib.ExitStack() as stack:
        hooked = _cycle(stack.enter_context(on_terminal(made.argv, **_additions(made.env))), name, hooks=True)
        bare = _cycle(stack.enter_context(on_terminal([path, "-i"], **bare_env)), name, hooks=False)
        for _ in range(run.count(WARM_UP, 2)):
            hooked()
            bare()
        for _ in range(run.pairs(7)):
            times = [(_timed(hooked), _timed(bare)) for _ in range(per_round)]
            with_hooks.append(median([one for one, _ in times]))
            without.append(median([one for _, one in times]))
            added.append(with_hooks[-1] - without[-1])
    value, aim = median(added), AIMS_US[name]
    return Row(
        "prompt", f"{title}, added by our hooks", value, "us", against="a cycle without hooks",
        against_value=median(without), ratio=median(with_hooks) / median(without), ratio_of="with hooks / without",
        aim=f"at most {aim} us", met=value <= aim, low=min(added), high=max(added), note=NOTE,
    )  # fmt: skip


def _additions(env: dict[str, str]) -> dict[str, str]:
    """Return what a planned environment has and the caller's has not."""
    return {name: value for name, value in env.items() if os.environ.get(name) != value}


def _cycle(master: int, name: str, *, hooks: bool) -> Callable[[], None]:
    shown = b";__PROMPT__;" if hooks else PROMPT
    last = _LAST.get(name, b"\x07" if hooks else PROMPT)

    def read_prompt(begin: bytes) -> None:
        # Before the command begins, bash draws its prompt again.
        data, answered = b"", 0
        while begin not in data or shown not in data[data.find(begin) :] or last not in data[data.rfind(shown) :]:
            data += read_some(master, data)
            while answered < data.count(_QUESTION):
                os.write(master, _ANSWER)
                answered += 1

    def cycle() -> None:
        os.write(master, KEYS[name] if hooks else b":\r")
        read_prompt(b";__BEGIN__;" if hooks else b"")

    read_prompt(b"")
    # fish may draw its first prompt a second time.
    while select.select((master,), (), (), 0.3)[0]:
        os.read(master, CHUNK)
    return cycle


def _timed(cycle: Callable[[], None]) -> float:
    begin = time.perf_counter()
    cycle()
    return (time.perf_counter() - begin) * 1e6


def _version(name: str, path: str) -> str:
    variable = {"bash": "$BASH_VERSION", "zsh": "$ZSH_VERSION", "fish": "$version"}[name]
    found = subprocess.run([path, "-c", f'echo "{variable}"'], capture_output=True, text=True, check=False, timeout=30)
    return found.stdout.strip().split("(")[0]
