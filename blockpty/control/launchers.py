"""Launchers: programs that run a command or a shell text which is among their arguments.

Rules of this file: data, and pure functions from the arguments of a program to what it starts. An option that is in no
table makes the command unknown where its value could be mistaken for the program.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec import Struct

from blockpty.control.inline_code import is_harmless
from blockpty.control.simple_command import SEVERAL, SOME_NAME, UNKNOWN, Stdin


class Started(Struct, frozen=True):
    """Command that a launcher starts: words, a shell text, or something that cannot be known.

    Attributes:
        words: a program and its arguments.
        text: shell text, in the grammar of `shell`.
        unknown: why it cannot be known.
        remote: it runs elsewhere, in a directory that is not known.
    """

    words: tuple[str, ...] = ()
    text: str | None = None
    unknown: str = ""
    remote: bool = False
    shell: str = "bash"


class Options(Struct, frozen=True):
    """The options of a launcher.

    Attributes:
        flags: letters of options without a value; None: any letter that is not in `values`.
        values: letters of options whose value follows, or is the rest of the word.
        names: long options whose value is the next word.
        skip: arguments between the options and the command.
        assignments: NAME=value may stand before the command.
        remote: the command runs elsewhere.
        joins: the rest is a shell text, joined by blanks.
        texts: options whose value is a shell text.
    """

    flags: str | None = None
    values: str = ""
    names: tuple[str, ...] = ()
    skip: int = 0
    assignments: bool = False
    remote: bool = False
    joins: bool = False
    texts: tuple[str, ...] = ()


_COMMANDS: Final = {
    "sudo": Options(
        "ABbEeHhiKklNnPSsVv", "CDgpRrTtUua",
        ("--user", "--group", "--host", "--prompt", "--chdir", "--chroot", "--close-from", "--other-user", "--role",
         "--type", "--command-timeout", "--auth-type", "--login-class"), assignments=True,
    ),
    "doas": Options("Lns", "aCu"),
    "pkexec": Options("", "", ("--user",)),
    "run0": Options("", "ugpD", ("--user", "--group", "--property", "--chdir", "--unit", "--setenv")),
    "gosu": Options("", skip=1),
    "su-exec": Options("", skip=1),
    "setuidgid": Options("", skip=1),
    "command": Options("p"),
    "builtin": Options(""),
    "exec": Options("cl", "a"),
    "noglob": Options(""),
    "ssh-agent": Options("cDdks", "aEOPt"),
    "repeat": Options("", skip=1),
    "nocorrect": Options(""),
    "-": Options(""),
    "nohup": Options(""),
    "setsid": Options("cfw"),
    "nice": Options("0123456789", "n", ("--adjustment",)),
    "ionice": Options("t", "cnpPu", ("--class", "--classdata")),
    "timeout": Options("vfp", "ks", ("--signal", "--kill-after"), skip=1),
    "gtimeout": Options("vfp", "ks", ("--signal", "--kill-after"), skip=1),
    "stdbuf": Options("", "ioe", ("--input", "--output", "--error")),
    "time": Options("apqvlhV", "of", ("--output", "--format")),
    "gtime": Options("apqvlhV", "of", ("--output", "--format")),
    "unbuffer": Options("p"),
    "rlwrap": Options(None, "abcDfghHlmMoOpPqsStwz"),
    "chrt": Options("abdfimorRpv", "TPD", skip=1),
    "taskset": Options("ac", "", skip=1),
    "setarch": Options("vRFZLXBIS3", skip=1),
    "linux32": Options(None),
    "linux64": Options(None),
    "arch": Options(None, "ed"),
    "caffeinate": Options("disum", "tw"),
    "choom": Options("", "np", ("--adjust",)),
    "eatmydata": Options(""),
    "fakeroot": Options("uv", "lsib"),
    "chroot": Options("", "", ("--userspec", "--groups"), skip=1, remote=True),
    "unshare": Options("imnpuUCTrcfh", "RwSG", ("--root", "--wd", "--setuid", "--setgid", "--map-user", "--map-group")),
    "nsenter": Options("amuinpCUTFZhe", "tSGrw", ("--target", "--setuid", "--setgid"), remote=True),
    "setpriv": Options("dh", "", ("--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set", "--securebits")),
    "prlimit": Options("hV", "p"),
    "numactl": Options("HslaV", "iNmCpP"),
    "systemd-run": Options("tPqdrGShV", "puEMHC", ("--unit", "--property", "--slice", "--setenv", "--uid", "--gid",
                                                 "--description", "--working-directory", "--machine", "--host")),
    "dbus-run-session": Options("", "", ("--config-file", "--dbus-daemon")),
    "xvfb-run": Options("al", "ensfpw", ("--server-args", "--server-num", "--auth-file", "--error-file")),
    "strace": Options("cCdfFhiknqrtTvVwxyYDZz", "abeEIoOpPsSuXU", ("--output", "--trace", "--env", "--user")),
    "ltrace": Options("cCfhiLrStTVb", "aADenosupxlwF"),
    "valgrind": Options("qvdh"),
    "catchsegv": Options(""),
    "torsocks": Options("iapuPd"),
    "proxychains": Options("q", "f"),
    "proxychains4": Options("q", "f"),
    "tini": Options("sgvw", "pe"),
    "dumb-init": Options("cvV", "r"),
    "entr": Options("acdnprsxz"),
    "busybox": Options(""),
    "toybox": Options(""),
    "fakechroot": Options("sch", "lde"),
    "uvx": Options("qvn", "pcw", ("--from", "--with", "--python", "--with-editable", "--index", "--index-url")),
    "npx": Options("yqn", "pw", ("--package", "--workspace"), texts=("-c", "--call")),
    "bunx": Options(None),
    "watch": Options("bcdegptwCrfv", "nqs", ("--interval", "--equexit", "--shotsdir"), joins=True),
    "hyperfine": Options("iNh", "wmMrspPDLnuS", ("--warmup", "--runs", "--min-runs", "--max-runs", "--export-json",
                         "--export-markdown", "--export-csv", "--command-name", "--parameter-list", "--shell"),
                         texts=("-s", "-p", "-c", "--setup", "--prepare", "--cleanup", "--conclude")),
    "ssh": Options("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmoOpPQRSWw", skip=1, remote=True, joins=True),
    "autossh": Options("46AaCfGgKkNnqsTtVvXxYy", "BbcDEeFIiJLlmMoOpPQRSWw", skip=1, remote=True, joins=True),
    "mosh": Options("46an", "", ("--port", "--ssh", "--server"), skip=1, remote=True),
}  # fmt: skip
"""Programs whose first argument behind the options is a program, or a shell text where `joins` says so."""

_MOVING_OPTIONS: Final = ("-C", "-D", "--chdir", "--working-directory", "--directory", "--cwd")
"""Options with which some launchers change the working directory."""
_DEFAULT_TO_SHELL: Final = frozenset({"ssh", "autossh", "mosh", "chroot", "nsenter", "unshare", "sudo", "doas"})
"""Programs that start a shell if no command is given."""
_DOCKER: Final = Options(
    "itdPqT", "aceghlmpuvwL",
    ("--name", "--network", "--net", "--env", "--env-file", "--volume", "--mount", "--publish", "--user", "--workdir",
     "--entrypoint", "--platform", "--memory", "--cpus", "--label", "--hostname", "--gpus", "--restart", "--pull",
     "--add-host", "--shm-size", "--ulimit", "--device", "--cap-add", "--cap-drop", "--security-opt", "--tmpfs",
     "--ipc", "--pid", "--runtime", "--log-driver", "--log-opt", "--dns", "--expose", "--link", "--index",
     "--detach-keys", "--volumes-from", "--cidfile", "--cpuset-cpus", "--memory-swap", "--userns",
     "--health-cmd", "--stop-signal"),
    skip=1, remote=True,
)  # fmt: skip
_RUN: Final = Options(
    None, "pnCw",
    ("--with", "--python", "--extra", "--spec", "--pip-args",
     "--group", "--project", "--directory", "--env-file", "--package", "--from",
     "--with-requirements", "--only-group", "--index", "--name", "--prefix", "--cwd", "--filter", "--workspace",
     "--with-editable", "--index-url", "--no-group", "--env", "--profile"),
)  # fmt: skip
_SUBCOMMANDS: Final = {
    **dict.fromkeys([("docker", "exec"), ("docker", "run"), ("podman", "exec"), ("podman", "run")], _DOCKER),
    **dict.fromkeys([("nerdctl", "exec"), ("nerdctl", "run"), ("docker-compose", "exec")], _DOCKER),
    **dict.fromkeys([("docker-compose", "run"), ("lxc", "exec")], _DOCKER),
    **dict.fromkeys(
        [
            ("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("rye", "run"), ("conda", "run"),
            ("mamba", "run"), ("micromamba", "run"), ("bundle", "exec"), ("pnpm", "exec"), ("pnpm", "dlx"),
            ("yarn", "exec"), ("yarn", "dlx"), ("npm", "exec"), ("npm", "x"), ("mise", "exec"), ("mise", "x"),
            ("pipx", "run"), ("asdf", "exec"), ("rbenv", "exec"), ("pyenv", "exec"), ("op", "run"), ("doppler", "run"),
            ("hatch", "run"), ("coverage", "run"), ("bun", "x"), ("opam", "exec"), ("fly", "exec"), ("dotenv", "run"),
        ],
        _RUN,
    ),
    **dict.fromkeys(
        [("direnv", "exec"), ("rustup", "run"), ("aws-vault", "exec"), ("chamber", "exec")], Options(None, skip=1)
    ),
}  # fmt: skip

SHELLS: Final = frozenset(
    {"sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "oksh", "yash", "fish", "rbash", "csh", "tcsh"}
)
_INTERPRETERS: Final = {
    "python": "c", "pypy": "c", "ipython": "c", "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep",
    "php": "rBER", "lua": "e", "luajit": "e", "tclsh": "", "osascript": "e", "rscript": "e", "deno": "",
    "bun": "ep", "groovy": "e", "scala": "e", "elixir": "e", "erl": "", "julia": "eE", "guile": "c",
    "racket": "e", "ghc": "e", "expect": "c", "wish": "",
    "pwsh": "cC", "powershell": "cC", "r": "e", "jshell": "", "raku": "e", "octave": "", "sbcl": "", "emacs": "",
}  # fmt: skip
"""Programs that run a program given as text, and the letters of the options that give it."""
_VALUES: Final = {
    "python": "WXQ", "pypy": "WX", "ipython": "", "perl": "IMmi", "ruby": "rIC", "node": "rC", "nodejs": "rC",
    "php": "cdfSz", "lua": "l", "luajit": "l", "julia": "LpJ",
}  # fmt: skip
"""Letters of their options that take the rest of the word as a value, or for most of them the next word."""
_ATTACHED_ONLY: Final = frozenset({("perl", "M"), ("perl", "m"), ("perl", "i")})
_CODE_OPTIONS: Final = frozenset(
    {"--eval", "--print", "--execute", "-Command", "eval", "-eval", "--command", "-EncodedCommand"}
)
_LONG_VALUES: Final = frozenset({
    "--require", "--import", "--loader", "--experimental-loader", "--env-file", "--conditions", "--define", "--project",
    "--check-hash-based-pycs",
})  # fmt: skip
_ENVIRONMENT_FILES: Final = re.compile(
    r"(?:.*/)?(?:activate(?:\.\w+)?|\.?(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv|env|envrc|bash_aliases)"
    r"|\.(?:bash_login|bash_functions|zsh_aliases|zlogin|xprofile|aliases|functions|exports|path)"
    r"|nvm\.sh|environment|config\.fish|setup\.(?:ba|z)?sh|emsdk_env\.sh|sdkman-init\.sh|conda\.sh|asdf\.sh|\.env\.\w+)"
)
"""Files that people source all day: they set variables, and are as harmless or not as the scripts of a project."""
_TEXT_OPTIONS: Final = {
    "tar": ("--to-command", "--use-compress-program", "-I", "--rsh-command", "--info-script", "-F"),
    "gtar": ("--to-command", "--use-compress-program", "-I", "--rsh-command", "--info-script", "-F"),
    "bsdtar": ("--use-compress-program",),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "split": ("--filter",),
    "sort": ("--compress-program",),
    "man": ("-P", "--pager"),
    "zip": ("-TT", "--unzip-command"),
    "nix-shell": ("--run", "--command"),
    "vagrant": ("-c", "--command"),
    "gcloud": ("--command",),
    "nodemon": ("-x", "--exec"),
    "watchman-make": ("--run",),
    "ninja": (),
}
"""Options of other programs whose value is a shell text."""
_ESCAPES: Final = {
    **dict.fromkeys(
        ("vi", "vim", "nvim", "view", "ex", "gvim", "editor"),
        r"^[+:]?.*!|\bsystem\s*\(|^[+:]?\s*(?:call|exe|py|pyx|py3|lua|perl|ruby|tcl)\b",
    ),
    **dict.fromkeys(("psql", "mysql", "mariadb"), r"\\!|\bsystem\b|\bcopy\b.*\bprogram\b|\\o\s*\||\\g\s*\|"),
    "sqlite3": r"^\s*\.(?:sh|system|once|import)",
    **dict.fromkeys(("gdb", "lldb"), r"^\s*(?:sh|!|py|pipe|make|platform\s+sh)"),
    **dict.fromkeys(("nc", "ncat", "netcat"), r"^-[a-z]*[ec]|^--(?:sh-)?exec"),
    "socat": r"(?i)^(?:exec|system):",
    "make": r"^--eval|\$\(shell|^(?:-f)?-$|^/dev/",
    "gmake": r"^--eval|\$\(shell|^(?:-f)?-$|^/dev/",
    "ed": r"^\s*(?:[erw]\s*)?!",
    "always": "",
    "less": r"^\+.*!",
    "crontab": r"^(?!-l$|-e$|-u$)",
}
"""Arguments with which these programs run a command that is not looked for."""
_GIT_COMMANDS: Final = re.compile(
    r"(?i)^(?:alias\..*|.*(?:pager|editor|command|helper|external|textconv|cmd|fsmonitor|proxy|askpass|smudge|clean"
    r"|process|hookspath|program|driver|browser\..*))$"
)


def started(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    """Return what a program starts, besides being run itself; nothing for most programs."""
    options = _COMMANDS.get(program)
    if options is not None:
        found = _behind(program, options, arguments)
        if program in _DEFAULT_TO_SHELL and stdin is not None and not any(one.words or one.text for one in found):
            found.append(_read_by_shell(program, stdin, remote=options.remote))
        return found
    special = _SPECIAL.get(program)
    if special is not None:
        return special(program, arguments, stdin)
    found = []
    for place in subcommands(arguments) if program in _WITH_SUBCOMMANDS else ():
        name, rest = arguments[place], arguments[place + 1 :]
        if name == "compose" and program in ("docker", "podman"):
            return started("docker-compose", rest, stdin)
        if (program, name, *rest[:1]) == ("uv", "tool", "run"):
            return started("uvx", rest[1:], stdin)
        options = _SUBCOMMANDS.get((program, name))
        if options is not None:
            found += _behind(program, options, rest)
            break
    if program in _TEXT_OPTIONS:
        found += _texts(arguments, _TEXT_OPTIONS[program])
    escape = _ESCAPES.get(program)
    read = stdin.text.splitlines() if escape is not None and stdin is not None and stdin.text else ()
    if escape is not None and any(re.search(escape, argument) for argument in (*arguments, *read)):
        found.append(Started(unknown=f"has {program} run another program"))
    if program.startswith(("ld-linux", "ld-musl", "ld.so")):
        return _behind(program, Options("", "", ("--library-path", "--argv0", "--preload", "--audit")), arguments)
    base = program.rstrip("0123456789.")
    if base in _INTERPRETERS:
        found += _interpreter(base, arguments, stdin)
    return found


def _read_by_shell(program: str, stdin: Stdin, *, remote: bool = False) -> Started:
    if stdin.text is None:
        return Started(unknown=f"has a shell of {program} run what it reads")
    return Started(text=stdin.text, remote=remote)


def subcommands(arguments: Sequence[str]) -> list[int]:
    """Return where the subcommand may be: at the first argument that is no option, or behind an option's value."""
    found = []
    after_option = False
    for index, argument in enumerate(arguments):
        if argument.startswith(("-", "+")):
            after_option = "=" not in argument and argument != "--"
        else:
            found.append(index)
            if not after_option:
                break
            after_option = False
    return found


def _behind(program: str, options: Options, arguments: Sequence[str]) -> list[Started]:
    """Return what stands behind the options of a launcher."""
    found: list[Started] = []
    at = 0
    skip = options.skip
    if program in ("npm", "mise", "op", "doppler", "opam", "aws-vault", "chamber") and "--" in arguments:
        at = list(arguments).index("--")
        skip = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            at += 1
            if not skip:
                break
        elif word.startswith("--"):
            at += _long(options, word, arguments[at + 1 : at + 2], found)
        elif word.startswith("-") and len(word) > 1:
            taken = _short(options, word, arguments[at + 1 : at + 2], found)
            if not taken:
                return [*found, Started(unknown=f"gives {program} an option that is not known here")]
            at += taken
        elif options.assignments and (word == "-" or re.match(r"[A-Za-z_]\w*=", word)):
            at += 1
        elif word.startswith(UNKNOWN) and word != UNKNOWN and not skip:
            return [*found, Started(unknown="runs a program known only at run time")]
        elif skip:
            skip -= 1
            at += 1
        else:
            break
    rest = tuple(arguments[at:])
    if program == "uv" and rest[:1] == ("-",):
        rest = ("python", *rest)
    if rest and not skip:
        if program == "hyperfine":
            found += [Started(text=text) for text in rest]
        elif options.joins and not (program == "watch" and any(a in ("-x", "--exec") for a in arguments[:at])):
            found.append(Started(text=" ".join(rest), remote=options.remote))
        else:
            moves = any(one.startswith(_MOVING_OPTIONS) for one in arguments[:at])
            found.append(Started(words=rest, remote=options.remote or moves))
    return found


def _long(options: Options, word: str, following: Sequence[str], found: list[Started]) -> int:
    name, sign, value = word.partition("=")
    takes = name in options.names or name in options.texts
    if name in options.texts:
        found.append(Started(text=value if sign else "".join(following)))
    return 2 if takes and not sign else 1


def _short(options: Options, word: str, following: Sequence[str], found: list[Started]) -> int:
    """Return how many words an option of letters takes; 0 if one of its letters is not known."""
    for index, letter in enumerate(word[1:], 1):
        if "-" + letter in options.texts or letter in options.values:
            attached = word[index + 1 :]
            value = attached or "".join(following)
            if "-" + letter in options.texts:
                found.append(Started(text=value))
            elif options.joins and letter == "o" and re.match(r"(?i)(?:proxy|local|remote|knownhosts)command", value):
                found.append(Started(text=re.split(r"[= ]", value, maxsplit=1)[-1]))
            return 1 if attached else 2
        if options.flags is not None and letter not in options.flags:
            return 0
    return 1


def _texts(arguments: Sequence[str], names: Sequence[str]) -> list[Started]:
    """Return the shell texts that are values of options."""
    found = []
    for index, argument in enumerate(arguments):
        name, sign, value = argument.partition("=")
        if name in names:
            found.append(Started(text=value if sign else "".join(arguments[index + 1 : index + 2])))
        elif name == "--checkpoint-action" and value.startswith("exec="):
            found.append(Started(text=value[5:]))
    return found


# --- programs with a way of their own


def _shell(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    at = 0
    takes_text = from_stdin = False
    while at < len(arguments) and (arguments[at][:1] in "-+" and arguments[at] not in ("-", "--", "")):
        word = arguments[at]
        if not word.startswith("--"):
            takes_text |= "c" in word
            from_stdin |= "s" in word
        at += 2 if word in ("--rcfile", "--init-file") or re.fullmatch(r"[-+]\w*[oO]", word) else 1
        if word in ("--command", "--init-command", "-C") and program == "fish":
            takes_text = True
            break
    if any(UNKNOWN in word for word in arguments[:at]):
        return [Started(unknown=f"gives {program} options known only at run time")]
    texts = [word for word in arguments[:at] if word.startswith(("--command=", "--init-command="))]
    found = [Started(text=word.partition("=")[2], shell=program) for word in texts]
    return found + _shell_input(program, arguments[at:], stdin, takes_text=takes_text, from_stdin=from_stdin)


def _shell_input(
    program: str, arguments: Sequence[str], stdin: Stdin | None, *, takes_text: bool, from_stdin: bool
) -> list[Started]:
    """Return what a shell reads: the text that it is given, a file, or its standard input."""
    rest = arguments[1:] if arguments[:1] and arguments[0] in ("-", "--") else arguments
    if takes_text:
        if not rest or rest[0].startswith(UNKNOWN):
            return [Started(unknown=f"gives {program} a text known only at run time")]
        found = [Started(text=rest[0], shell=program)]
        if program == "fish" and any(word.startswith("-") for word in rest[1:]):
            found.append(Started(unknown="gives fish several texts"))
        return found
    if rest and not from_stdin:
        if UNKNOWN in rest[0] or rest[0].startswith(("/dev/", "/proc/")):
            return [Started(unknown=f"has {program} run a file known only at run time")]
        return []
    if stdin is None:
        return []
    if stdin.text is None:
        return [Started(unknown=f"has {program} run what another program prints")]
    return [Started(text=stdin.text, shell=program)]


def _env(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    for index, word in enumerate(arguments):
        if re.fullmatch(r"-[i0v]*S.*", word) or word.startswith("--split-string"):
            attached = word.partition("=")[2] if word.startswith("--") else word[word.index("S") + 1 :]
            rest = arguments[index + 1 :]
            text, rest = (attached, rest) if attached else ("".join(rest[:1]), rest[1:])
            return [Started(text=" ".join([text, *map(shlex.quote, rest)]))]
        if not word.startswith("-") and "=" not in word:
            break
    return _behind(program, Options("i0v", "uC", ("--unset", "--chdir"), assignments=True), arguments)


def _command(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    if arguments and re.fullmatch(r"-p*[vV]", arguments[0]):
        return []
    return _behind(program, Options("p"), arguments)


def _xargs(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    options = Options(
        "0oprtxeil",
        "adEILnPsRJS",
        (
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-procs",
            "--replace",
            "--max-lines",
            "--max-chars",
            "--process-slot-var",
            "--eof",
        ),
    )
    replaced = ""
    plain = []
    for index, word in enumerate(arguments):
        if word.startswith(("-i", "--replace")):
            replaced = word.partition("=")[2] or word[2:] if word.startswith("-i") else word.partition("=")[2]
            replaced = replaced or "{}"
            plain.append("-i" if not word.startswith("--replace") else "--replace=" + replaced)
        elif re.fullmatch(r"-[el].+", word):
            plain.append(word[:2])
        else:
            if word[:2] == "-I" or word[:2] == "-J":
                replaced = word[2:] or "".join(arguments[index + 1 : index + 2])
            plain.append(word)
    found = []
    for one in _behind(program, options, plain):
        words = one.words
        if replaced:
            words = tuple(word.replace(replaced, _listed(stdin) or UNKNOWN) for word in words)
        elif words:
            words = (*words, _listed(stdin) or SEVERAL)
        found.append(Started(words, one.text, one.unknown))
    return found


def _listed(stdin: Stdin | None) -> str:
    """Return what stands for the names that `find` or git lists, which are no options and have a known beginning."""
    if stdin is None or not stdin.commands or any(one.unknown for one in stdin.commands):
        return ""
    first, *others = stdin.commands
    if any(one.program not in ("grep", "sort", "uniq", "head", "tail") for one in others):
        return ""
    if first.program in ("find", "gfind"):
        return _below(first.arguments)
    if first.program == "git" and set(first.arguments[:2]) & {"ls-files", "diff", "grep"}:
        return f"./{SOME_NAME}"
    return ""


def _below(arguments: Sequence[str]) -> str:
    """Return what stands for the names that find prints or runs a program with."""
    roots = []
    for argument in arguments:
        if not argument.startswith(("-", "(", "!")):
            roots.append(argument)
        elif argument not in ("-H", "-L", "-P") and not argument.startswith(("-O", "-D")):
            break
    return f"{roots[0]}/{SOME_NAME}" if len(roots) == 1 else UNKNOWN if roots else f"./{SOME_NAME}"


def _find(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    found: list[Started] = []
    below = _below(arguments)
    at = 0
    while at < len(arguments):
        if arguments[at] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = at + 1
            while (
                end < len(arguments)
                and arguments[end] != ";"
                and not (arguments[end] == "+" and arguments[end - 1] == "{}")
            ):
                end += 1
            words = tuple(
                word.replace("{}", below) if word == "{}" else word.replace("{}", UNKNOWN)
                for word in arguments[at + 1 : end]
            )
            found.append(Started(words=words) if words else Started(unknown="has find run nothing that is known"))
            at = end
        elif arguments[at] == SEVERAL:
            found.append(Started(unknown="gives find tests known only at run time"))
        at += 1
    return found


def _fd(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    for index, word in enumerate(arguments):
        if word in ("-x", "-X", "--exec", "--exec-batch"):
            # Its second argument, and the value of some options, is where it looks.
            before = arguments[:index]
            moves = any(one.startswith(("-C", "--base", "--search")) for one in before)
            elsewhere = moves or len(_positional(before, "etEdcjSo")) > 1
            name = UNKNOWN if elsewhere else f"./{SOME_NAME}"
            rest = [name if re.fullmatch(r"\{[./]*\}", one) else one for one in arguments[index + 1 :] if one != ";"]
            return [Started(words=tuple(rest if name in rest else [*rest, name]))]
    return []


def _eval(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    text = " ".join(argument for argument in arguments if argument != "--")
    if UNKNOWN in text:
        return [Started(unknown="evaluates a text known only at run time")]
    return [Started(text=text)] if text else []


def _source(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    if not arguments and stdin is None:
        return []
    file = arguments[0] if arguments else ""
    if file and (_ENVIRONMENT_FILES.fullmatch(file) and not file.startswith(("/dev/", "/proc/", "/tmp/"))):
        return []
    return [Started(unknown="reads commands from a file into the shell")]


def _trap(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    words = [argument for argument in arguments if argument not in ("--", "-p", "-l")]
    return [Started(text=words[0])] if len(words) > 1 and words[0] not in ("", "-") else []


def _script(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    options = Options(
        None,
        "EIOBTmot",
        ("--timing", "--log-timing", "--log-in", "--log-out", "--log-io"),
        1,
        texts=("-c", "--command"),
    )
    return _behind(program, options, arguments)


def _su(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    for index, word in enumerate(arguments):
        attached = word.partition("=")[2] if word.startswith(("--command=", "--session-command=")) else ""
        if attached:
            return [Started(text=attached)]
        if word in ("--command", "--session-command") or re.fullmatch(r"-[flmpP]*c", word):
            return [Started(text="".join(arguments[index + 1 : index + 2]))]
    if program == "runuser" and any(word in ("-u", "--user") for word in arguments):
        return _behind(program, Options("lmpP", "ugGsw", ("--user", "--group", "--supp-group", "--shell")), arguments)
    if program == "sg" and len(arguments) > 1:
        return [Started(text=arguments[1])]
    return []


def _flock(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    for index, word in enumerate(arguments):
        if word in ("-c", "--command"):
            return [Started(text="".join(arguments[index + 1 : index + 2]))]
    return _behind(program, Options("sxeunoFv", "wE", ("--wait", "--timeout", "--conflict-exit-code"), 1), arguments)


def _parallel(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    words = list(arguments)
    for index, word in enumerate(words):
        if word.startswith(":::"):
            words = words[:index]
            break
    options = Options(
        "kmquvXtr0",
        "jIaNnLCSdPs",
        (
            "--jobs",
            "--max-args",
            "--colsep",
            "--joblog",
            "--arg-file",
            "--delay",
            "--timeout",
            "--retries",
            "--results",
            "--sshlogin",
            "--halt",
            "--tmpdir",
        ),
    )
    found = _behind(program, options, words)
    if not any(one.words for one in found):
        return [*found, Started(unknown="has parallel run what it reads")]
    texts = [re.sub(r"\{[^{}\s]*\}", UNKNOWN, " ".join(one.words)) for one in found]
    return [Started(text=text if UNKNOWN in text else f"{text} {SEVERAL}") for text in texts]


_TMUX_KEYS: Final = frozenset({"send-keys", "send"})
_TMUX_TEXTS: Final = frozenset({
    "new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawn-window", "run-shell",
    "run", "if-shell", "if", "pipe-pane", "display-popup", "popup",
})  # fmt: skip


def _named(arguments: Sequence[str], names: Collection[str]) -> tuple[str, Sequence[str]]:
    """Return the first possible subcommand that is one of some names, and what follows it."""
    for place in subcommands(arguments):
        if arguments[place] in names:
            return arguments[place], arguments[place + 1 :]
    return "", ()


def _tmux(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    name, rest = _named(arguments, _TMUX_KEYS | _TMUX_TEXTS)
    if name in _TMUX_KEYS:
        keys = _positional(rest, "tN")
        return [Started(text="".join("\n" if key in ("Enter", "C-m", "C-j") else key for key in keys))] if keys else []
    if name:
        words = _positional(rest, "ctnsFxyelp")
        if name in ("if-shell", "if"):
            return [Started(text=words[0]), Started(unknown="has tmux run a command of its own")] if words else []
        return [Started(text=" ".join(words))] if words else []
    return []


def _positional(arguments: Sequence[str], values: str) -> list[str]:
    found: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument.startswith("-") and len(argument) > 1 and not found:
            skip = argument[-1] in values and len(argument) == 2
        else:
            found.append(argument)
    return found


def _screen(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    if "-X" in arguments:
        return [Started(unknown="has screen run a command of its own")]
    return _behind(
        program,
        Options("adDhilmqrRwxALOUvs", "ceEfhpSstT"),
        [one for one in arguments if one != "-dmS"]
        if "-dmS" not in arguments
        else arguments[list(arguments).index("-dmS") + 2 :],
    )


def _at(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    if any(one in ("-l", "-d", "-r", "-c") for one in arguments):
        return []
    if stdin is not None and stdin.text is not None:
        return [Started(text=stdin.text, shell="sh")]
    return [Started(unknown=f"has {program} run commands later")]


def _kubectl(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    if any(one in ("exec", "run", "debug") for one in arguments[:6]) and "--" in arguments:
        return [Started(words=tuple(arguments[list(arguments).index("--") + 1 :]), remote=True)]
    return []


def _awk(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] not in ("-", "--"):
        word = arguments[at]
        if word.startswith(("-f", "--file")):
            file = word.partition("=")[2] if word.startswith("--") else word[2:]
            return _script_file(program, "awk", file or "".join(arguments[at + 1 : at + 2]), stdin)
        if word.startswith(("-e", "--source")):
            break
        at += 2 if word in ("-F", "-v", "-i", "-l", "--assign", "--field-separator", "--include", "--load") else 1
    # The next argument is the program, unless the one before was an option that has a value and is not known here.
    rest = " ".join(arguments[at + 1 :])
    return _checked_script(program, "awk", "".join(arguments[at : at + 1]), rest)


def _sed(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    for index, word in enumerate(arguments):
        found = re.match(r"-[nErsuz]*f(.*)|--file=(.*)", word, re.DOTALL)
        if found is not None:
            file = found[1] or found[2] or "".join(arguments[index + 1 : index + 2])
            return _script_file(program, "sed", file, stdin)
    scripts = [argument for argument in arguments if not re.match(r"-[a-zA-Z]*$|-i.*|--(?!expression)", argument)]
    chosen = scripts if any(re.match(r"-[a-zA-Z]*e|--expression", one) for one in arguments) else scripts[:1]
    return [one for script in chosen for one in _checked_script(program, "sed", script)][:1]


def _checked_script(program: str, language: str, script: str, rest: str = "") -> list[Started]:
    if script in (UNKNOWN, SEVERAL):
        return [Started(unknown=f"gives {program} a program known only at run time")]
    if is_harmless(language, script) and is_harmless(language, rest):
        return []
    return [Started(unknown=f"has {program} run another program")]


def _script_file(program: str, language: str, file: str, stdin: Stdin | None) -> list[Started]:
    """Return what a script runs that is read from a file: nothing is known of one that is made at run time."""
    if file in ("-", "/dev/stdin") and stdin is not None and stdin.text is not None:
        return _checked_script(program, language, stdin.text)
    if file == "-" or UNKNOWN in file or file.startswith(("/dev/", "/proc/")):
        return [Started(unknown=f"has {program} run a program known only at run time")]
    return []


def _interpreter(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    letters = _INTERPRETERS[program]
    reason = f"gives {program} a program that is not checked"
    value = False
    for index, word in enumerate(arguments):
        if value:
            value = False
        elif word in _CODE_OPTIONS or word.startswith(("--eval=", "--print=", "--execute=")):
            code = word.partition("=")[2] if "=" in word else "".join(arguments[index + 1 : index + 2])
            return [] if is_harmless(program, code) else [Started(unknown=reason)]
        elif re.match(r"-[A-Za-z0-9]", word):
            place, value = _code_letter(program, word)
            if place:
                code = word[place + 1 :] or "".join(arguments[index + 1 : index + 2])
                if is_harmless(program, code, word[1:place]) and not _more(program, letters, arguments[index + 2 :]):
                    return []
                return [Started(unknown=reason)]
            if program in ("python", "pypy") and not value and re.match(r"-[A-Za-z]*m", word):
                return _module(word.partition("m")[2], arguments[index + 1 :])
        elif word in _LONG_VALUES:
            value = True
        elif UNKNOWN in word and word.startswith("/dev/fd/"):
            return [Started(unknown=reason)]
        elif word == "-" or word.startswith(("/dev/stdin", "/dev/fd/", "/proc/self/fd")):
            break
        elif not word.startswith("-") and (program not in ("deno", "bun") or word != "run"):
            return []
    if stdin is None or any(one in ("--version", "-V", "-v", "--help", "-h") for one in arguments):
        return []
    if stdin.text is not None and is_harmless(program, stdin.text):
        return []
    return [Started(unknown=f"has {program} run what it reads")]


def _code_letter(program: str, word: str) -> tuple[int, bool]:
    """Return where in a word of short options the one stands that gives a program, and whether a value is still due."""
    for place, letter in enumerate(word[1:], 1):
        if letter in _INTERPRETERS[program]:
            return place, False
        if letter in _VALUES.get(program, ""):
            return 0, place == len(word) - 1 and (program, letter) not in _ATTACHED_ONLY
        if program in ("python", "pypy") and letter == "m":
            break
    return 0, False


def _more(program: str, letters: str, rest: Sequence[str]) -> bool:
    """Whether more program text may follow: perl and ruby take several -e."""
    return program in ("perl", "ruby") and any(re.match(r"-[a-z]*e", one) for one in rest)


def _module(attached: str, rest: Sequence[str]) -> list[Started]:
    """Return what `python -m module` starts: the module as a program, and the code that some modules are given."""
    name, arguments = (attached, rest) if attached else ("".join(rest[:1]), rest[1:])
    if name in ("timeit", "cProfile", "profile", "trace", "code", "pdb"):
        texts = [one for one in arguments if re.search(r"[\s(;]", one)]
        if not all(is_harmless("python", one) for one in texts):
            return [Started(unknown="gives python a program that is not checked")]
    return [Started(words=(name, *arguments))] if name else []


_GIT_PROGRAMS: Final = ("--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--extcmd")
"""Options of git with a program as their value."""


def _git_setting(setting: str, following: Sequence[str]) -> list[Started]:
    """Return what `git -c setting` has git run; what follows it is given to an alias."""
    name, _, value = setting.partition("=")
    if not _GIT_COMMANDS.match(name):
        return []
    if "hookspath" in setting.lower():
        return [Started(unknown="gives git other hooks")]
    if name.lower().startswith("alias."):
        given = value[1:] if value.startswith("!") else "git " + value
        return [Started(text=" ".join([given, *map(shlex.quote, following[1:])]))]
    return [Started(text=value.lstrip("!"))] if value.strip() else []


def _git(program: str, arguments: Sequence[str], stdin: Stdin | None) -> list[Started]:
    found: list[Started] = []
    for index, word in enumerate(arguments):
        if word == "-c" and index + 1 < len(arguments):
            found += _git_setting(arguments[index + 1], arguments[index + 2 :])
        elif word.startswith("--config-env"):
            found.append(Started(unknown="gives git a setting from the environment"))
        elif word.startswith("--exec-path="):
            found.append(Started(unknown="gives git other programs"))
        elif word.startswith("ext::"):
            found.append(Started(text=word[5:]))
    found += _texts(arguments, _GIT_PROGRAMS)
    name, following = _named(arguments, ("config", "bisect", "submodule", "rebase", "difftool", "grep"))
    rest = list(following)
    if name == "config" and len(rest) > 1:
        keys = [one for one in rest if not one.startswith("-")]
        keys = keys[1:] if keys[:1] == ["set"] else keys
        if len(keys) > 1 and _GIT_COMMANDS.match(keys[0]):
            value = keys[1]
            if value.startswith("!"):
                found.append(Started(text=f'{value[1:]} "$@"'))
            else:
                found.append(Started(text=value if "alias" not in keys[0] else "git " + value))
    elif name == "bisect" and rest[:1] == ["run"]:
        found.append(Started(words=tuple(rest[1:])))
    elif name == "submodule" and "foreach" in rest:
        words = [one for one in rest[rest.index("foreach") + 1 :] if one not in ("--recursive", "--quiet")]
        found.append(Started(text=" ".join(words)))
    elif name in ("rebase", "difftool"):
        found += _texts(rest, ("-x",))
    elif name == "grep":
        found += [Started(text=one[2:]) for one in rest if one.startswith("-O") and len(one) > 2]
    return found


_SPECIAL: Final[dict[str, Callable[[str, Sequence[str], Stdin | None], list[Started]]]] = {
    **dict.fromkeys(SHELLS, _shell),
    "env": _env, "genv": _env, "command": _command, "xargs": _xargs, "gxargs": _xargs, "find": _find, "gfind": _find,
    "fd": _fd, "fdfind": _fd, "eval": _eval, "source": _source, ".": _source, "trap": _trap, "script": _script,
    "su": _su, "runuser": _su, "sg": _su, "flock": _flock, "parallel": _parallel, "tmux": _tmux, "screen": _screen,
    "at": _at, "batch": _at, "kubectl": _kubectl, "oc": _kubectl, "awk": _awk, "gawk": _awk, "mawk": _awk, "nawk": _awk,
    "sed": _sed, "gsed": _sed, "git": _git,
}  # fmt: skip
del _COMMANDS["command"]
_WITH_SUBCOMMANDS: Final = {name for name, _ in _SUBCOMMANDS} | {"docker", "podman"}
