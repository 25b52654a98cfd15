"""Approvals: what waits for a person to allow it, shown exactly, and the verdict that names what was shown."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from typing import Any, Final

from msgspec import Struct

SCOPES: Final = ("once", "conversation", "always")
# Of a text that is longer, head and tail are shown; its digest covers all of it.
SHOWN_MOST: Final = 16_384
# Letters that look like nothing: format characters (bidirectional marks, zero-width joiners), and these.
_BLANK: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800")


class Approval(Struct, frozen=True):
    """Something that an agent asked for and a person has to allow; nothing of it has reached the terminal.

    Attributes:
        approval_id: its name inside the conversation.
        conversation_id: where it would happen.
        principal: who asks.
        operation: name of the operation that waits.
        sentence: what is asked, in one sentence.
        text: the exact input, with characters that cannot be seen made visible; None where it is a secret.
        digest: SHA-256 of what is asked, in hexadecimal; a verdict must name it.
        rule: name of the rule that asks.
        cwd: the shell's directory, when it is known.
        block_id: the block whose program would get the input; None for a command.
        requested_ts, expires_ts: ms since 1970; from when on it is denied, if there is no answer.
        always: the line that `approve` with the scope `always` adds to policy.toml; None where there is none.
    """

    approval_id: str
    conversation_id: str
    principal: str
    operation: str
    sentence: str
    text: str | None
    digest: str
    rule: str
    cwd: str | None
    block_id: str | None
    requested_ts: int
    expires_ts: int
    always: str | None = None

    def to_note(self) -> dict[str, Any]:
        """Return what the timeline says of it."""
        return {
            "type": "approval_requested", "approval_id": self.approval_id, "operation": self.operation,
            "sentence": self.sentence, "text": self.text, "digest": self.digest, "rule": self.rule, "cwd": self.cwd,
            "block_id": self.block_id, "expires_ts": self.expires_ts, "principal": self.principal,
        }  # fmt: skip


def digest_of(*parts: str | None, key: bytes = b"") -> str:
    """Return the digest of what is asked. `key`: random, for a secret, which a digest alone would let one guess."""
    # Lengths keep two different questions from being the same bytes.
    known = [None if part is None else part.encode("utf-8", "surrogatepass") for part in parts]
    content = b"".join(b"-" if part is None else b"%d:%s" % (len(part), part) for part in known)
    if key:
        return hmac.new(key, content, hashlib.sha256).hexdigest()
    return hashlib.sha256(content).hexdigest()


def visible(text: str) -> str:
    """Return a text in which no character can hide: control characters as ^X, invisible ones as <U+202E>."""
    shown = "".join(_shown(character) for character in text)
    if len(shown) <= SHOWN_MOST:
        return shown
    half = SHOWN_MOST // 2
    return f"{shown[:half]}\n<{len(shown) - 2 * half} characters more>\n{shown[-half:]}"


def _shown(character: str) -> str:
    code = ord(character)
    if character == "\n" or 32 < code < 127 or character == " ":
        return character
    if code < 32 or code == 127:
        return f"^{chr(code ^ 64)}"
    kind = unicodedata.category(character)
    if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp", "Mn", "Me") or character in _BLANK:
        return f"<U+{code:04X}>"
    return character
