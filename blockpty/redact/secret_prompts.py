"""Recognition of prompts for a secret, by the last line that a program has printed.

Rules of this file: pure. It is used where the terminal's modes do not tell: a raw terminal without echo is that of an
editor as well as that of a password prompt in a terminal inside of it (ssh, script, docker exec, tmux), of fish's
`read -s`, and of prompts that print stars. It may take too much for a prompt: such input is missing in the record, no
more.
"""

from __future__ import annotations

import re
from typing import Final

ASKED_WITHIN: Final = 2048
"""So many bytes of output are looked at."""

_LONGEST: Final = 300
# What is asked for, and a sign behind it; what was typed already may stand there as stars. Compiled at the first look:
# few programs need one.
_QUESTION: Final = (
    r"(?i)(?:pass(?:word|phrase|code|wd)|\bpin\b|secret|token|\botp\b|one-time|api[ _-]?key|credential"
    r"|(?:verification|authentication|security) code"
    r"|passwort|kennwort|mot de passe|contrase|senha|wachtwoord|парол|密码|密碼|パスワード|암호)"
    r"[^\n]{0,200}[:：?>][ \t]*[*•●·∙xX]{0,256}[ \t]*\Z"
)
_STARS: Final = r"[*•●∙]{1,256}[ \t]*\Z"


def asks_for_secret(text: bytes) -> bool:
    """Whether the last line of an output, in the view `text`, looks like a question for a secret or its answer."""
    lines = [line for line in re.split(r"[\r\n]", text.decode("utf-8", "replace")) if line.strip()]
    if not lines or text.endswith(b"\n"):
        return False
    line = lines[-1][-_LONGEST:]
    return re.search(_QUESTION, line) is not None or re.search(_STARS, line) is not None
