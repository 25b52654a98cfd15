"""Token uses at new addresses, as entries of the audit log.

An address is new to a token when no entry of the log names both: a server that is started again writes none twice.
"""

from __future__ import annotations

from blockpty.control.principals import Principal
from blockpty.spool.audit_log import AuditFilter, AuditLog

TOKEN_USE = "token_use"


class TokenUses:
    """Writes an entry when a token comes from an address for the first time.

    Args:
        log: the audit log of the home; it is read at the first call.
    """

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._known: set[tuple[str, str]] | None = None

    def __call__(self, principal: Principal, address: str) -> None:
        """Note that this principal was let in from this address (an IP address, or `unix`)."""
        if self._known is None:
            self._known = self._read()
        if (use := (principal.name, address)) not in self._known:
            self._known.add(use)
            self._log.add(TOKEN_USE, principal=principal.name, address=address)

    def _read(self) -> set[tuple[str, str]]:
        try:
            seen = self._log.entries(AuditFilter(type=TOKEN_USE))
            return {(one["principal"], str(one.get("address"))) for one in seen}
        except OSError:
            return set()
