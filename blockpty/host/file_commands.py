"""Commands that move a file through a terminal: one line for any shell that runs `sh`.

This is only their text, and what their answers look like. The content comes as lines of base64 with echo off, and never
stands in a command: it is not drawn and not recorded. It is put together in a part file in the directory of the file,
which is named after the digest of the whole: what a cut has left of it is used again.
"""

from __future__ import annotations

import re
from base64 import encodebytes
from collections.abc import Sequence
from typing import Final

from blockpty.host.shells.families import FISH, family_of
from blockpty.host.shells.staging import fish_quote_bytes, quote_bytes

ANSWER: Final = re.compile(rb"^blockpty-file ([A-Z0-9]+)([^\n]*)$", re.MULTILINE)
"""A line that such a command prints: a word, and what belongs to it."""

_END: Final = b"-"

_BEGIN: Final = (
    'say() { printf "blockpty-file %s\\n" "$*"; exit 0; }',
    # Of several programs that do the same, one is enough.
    'has() { for t; do command -v "$t" >/dev/null 2>&1 && return; done; say TOOL "$@"; }',
    "h() { if command -v sha256sum >/dev/null 2>&1; then sha256sum; "
    "elif command -v shasum >/dev/null 2>&1; then shasum -a 256; "
    "elif command -v openssl >/dev/null 2>&1; then openssl dgst -sha256 -r; "
    'else python3 -c "import hashlib,sys;print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"; fi; }',
    "has sha256sum shasum openssl python3",
    "has base64 openssl python3",
    "p=$1",
    'case $p in "~") p=$HOME;; "~/"*) p=$HOME/${p#??};; -*) p=./$p;; esac',
)
_PUT: Final = (
    *_BEGIN,
    'if [ -L "$p" ]; then [ -e "$p" ] || say LINK; has readlink; p=$(readlink -f "$p") || say LINK; fi',
    '[ -d "$p" ] && say EISDIR',
    'case $p in */) say EISDIR;; esac',
    'if [ -e "$p" ]; then [ -f "$p" ] || say EINVAL; [ -w "$p" ] || say EACCES; fi',
    "case $p in */*) q=${p%/*}/;; *) q=./;; esac",
    '[ -d "$q" ] || say ENOENT',
    '[ -w "$q" ] || say EACCES',
    "q=$q.blockpty-$2.part",
    'if [ -L "$q" ]; then say EINVAL; fi',
    'if [ -e "$q" ]; then [ -f "$q" ] && [ -O "$q" ] || say EINVAL; fi',
)  # fmt: skip

PREPARE: Final = (
    *_PUT,
    'if [ "$3" ]; then rm -f "$q"; fi',
    "umask 077",
    # Not `:`, which is special: a POSIX shell would end there.
    'true >>"$q" || say EACCES',
    'say PART $(wc -c <"$q") $(h <"$q")',
)
"""Makes the part file, and says how much is in it already, with the digest of that. Arguments: path, name, drop."""

APPEND: Final = (
    *_PUT,
    "has stty",
    "has sed",
    "d() { if base64 -d </dev/null >/dev/null 2>&1; then base64 -d; "
    "elif command -v openssl >/dev/null 2>&1; then openssl base64 -d; "
    'else python3 -c "import base64,sys;sys.stdout.buffer.write(base64.b64decode(sys.stdin.buffer.read()))"; fi; }',
    "s=$(stty -g) || say TOOL stty",
    'trap "stty $s" EXIT',
    'trap "exit 130" HUP INT TERM',
    "stty -echo -echonl icanon",
    'printf "blockpty-file READY\\n"',
    # All that is typed is read, also where a program ends early: the shell would take the rest for commands.
    'r=$(sed -n "/^-$/q;p" | { d; cat >/dev/null; } | { tee -a "$q"; cat >/dev/null; } | h)',
    'say PART $(wc -c <"$q") "$r"',
)
"""Adds what is typed to the part file; says its size, and the digest of what was added. Arguments: path, name."""

FINISH: Final = (
    *_PUT,
    'r=$(h <"$q")',
    "r=${r%% *}",
    '[ "$r" = "$3" ] || { rm -f "$q"; say DIGEST "$r"; }',
    "m=$4",
    'if [ -e "$p" ]; then o=$(stat -c %u:%g "$p" 2>/dev/null || stat -f %u:%g "$p"); chown "$o" "$q" 2>/dev/null; '
    '[ "$m" ] || m=$(stat -c %a "$p" 2>/dev/null || stat -f %Lp "$p"); fi',
    '[ "$m" ] || m=$(printf %o $((0666 & ~0$(umask))))',
    'chmod "$m" "$q" && mv -f "$q" "$p" || say EACCES',
    'say DONE "$r"',
)
"""Puts the part file in the place of the file if its digest is right. Arguments: path, name, digest, mode."""

GET: Final = (
    *_BEGIN,
    '[ -e "$p" ] || say ENOENT',
    '[ -d "$p" ] && say EISDIR',
    '[ -f "$p" ] || say EINVAL',
    '[ -r "$p" ] || say EACCES',
    "e() { if command -v base64 >/dev/null 2>&1; then base64; "
    "elif command -v openssl >/dev/null 2>&1; then openssl base64; "
    'else python3 -c "import base64,sys;base64.encode(sys.stdin.buffer,sys.stdout.buffer)"; fi; }',
    's=$(($(wc -c <"$p")))',
    '[ "$s" -gt "$2" ] && say EFBIG "$s"',
    # A file that grows meanwhile is sent as far as it went; of no bytes some `head` know nothing.
    'f() { if [ "$s" -gt 0 ]; then head -c "$s" <"$p"; fi; }',
    'printf "blockpty-file DATA\\n"',
    "f | e",
    'say DONE "$(f | h)"',
)
"""Prints a file in base64, and its digest. Arguments: path, the most bytes."""


def file_command(shell: str, script: Sequence[str], *arguments: str) -> str:
    """Return the line that runs one of these scripts in a shell; the blank keeps it out of histories that care."""
    quote = fish_quote_bytes if family_of(shell) == FISH else quote_bytes
    words = (quote(word) for word in ("; ".join(script), "blockpty", *arguments))
    return (b" sh -c " + b" ".join(words)).decode("utf-8", "surrogateescape")


def typed_chunk(data: bytes) -> bytes:
    """Return what is typed for `APPEND`: short lines, which every decoder and every terminal takes."""
    return encodebytes(data) + _END + b"\n"
