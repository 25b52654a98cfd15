"""The place of this home among those that write to one catalogue: its conversations, its leases, the other hosts.

A conversation belongs to the home that had it first, for good: that is where its record is. Within this, a lease says
which host works with that home now. Who comes again from the same host with the same home is the same owner: the
locks of the home see to it that there is only one, and a restart does not have to wait for the lease before it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Final

from blockpty.cluster.database import Connection
from blockpty.cluster.leases import Lease, Leases, holder

# How often a lease is renewed while it holds.
_RENEWALS: Final = 3
# A conversation that another host has is asked for again after so long.
_REFUSED_SECONDS: Final = 10.0

_REGISTER: Final = """
INSERT INTO conversation (conversation, home)
SELECT wanted.name, %(home)s FROM unnest(%(wanted)s::text[]) AS wanted (name) ORDER BY wanted.name
ON CONFLICT (conversation) DO NOTHING
"""
_OURS: Final = "SELECT conversation FROM conversation WHERE conversation = ANY(%(wanted)s) AND home = %(home)s"

_WHERE: Final = """
SELECT conversation.home, coalesce(nullif(home.address, ''), conversation.home)
FROM conversation JOIN home ON home.home = conversation.home
WHERE conversation.conversation = %s
"""


class Hosts:
    """Claims of one home; any thread may use it, with a connection in autocommit mode.

    Args:
        home: name of this home, unlike that of any other.
        host: name of this machine.
        address: where its server answers, for clients that are to ask there; may be empty.
        seconds: how long a lease holds without being renewed.
    """

    def __init__(self, home: str, host: str, address: str = "", *, seconds: float = 30.0) -> None:
        self.home = home
        self.address = address
        self.leases = Leases(f"{home}@{host}", address, seconds=seconds)
        self._held: dict[str, Lease] = {}
        self._refused: dict[str, float] = {}
        self._renewed = 0.0
        self._lock = threading.Lock()

    def claim(self, connection: Connection, names: Iterable[str]) -> list[Lease]:
        """Return the leases of those conversations that are, or now become, ours; new ones where none is held."""
        wanted, now = set(names), time.monotonic()
        with self._lock:
            missing = {name for name in wanted - set(self._held) if self._refused.get(name, 0.0) <= now}
        if missing:
            with connection.transaction():
                words = {"wanted": sorted(missing), "home": self.home}
                connection.execute(_REGISTER, words)
                ours = [row[0] for row in connection.execute(_OURS, words).fetchall()]
                taken = self.leases.take(connection, ours)
            with self._lock:
                self._held |= taken
                self._refused |= dict.fromkeys(missing - set(taken), now + _REFUSED_SECONDS)
        with self._lock:
            return [self._held[name] for name in sorted(wanted & set(self._held))]

    def renew(self, connection: Connection, *, now: bool = False) -> None:
        """Renew all leases when it is time to; those that another host took are ours no more."""
        with self._lock:
            due = now or time.monotonic() - self._renewed >= self.leases.seconds / _RENEWALS
            held = list(self._held.values())
            if not due or not held:
                return
            self._renewed = time.monotonic()
        still = self.leases.renew(connection, held)
        self.lost(lease for lease in held if lease.conversation not in still)

    def lost(self, leases: Iterable[Lease]) -> None:
        """Forget leases that hold no more; they are asked for again."""
        with self._lock:
            for lease in leases:
                if self._held.get(lease.conversation) == lease:
                    del self._held[lease.conversation]

    def release(self, connection: Connection) -> None:
        """Let all leases go: this engine ends."""
        with self._lock:
            held, self._held = list(self._held.values()), {}
        self.leases.release(connection, held)

    def held(self) -> Sequence[Lease]:
        """Return the leases that this home holds, as far as it knows."""
        with self._lock:
            return list(self._held.values())

    def elsewhere(self, connection: Connection, conversation: str) -> str | None:
        """Return where a conversation of another home is to be asked for; None when it is ours, or of no home.

        That is the address its host gave, or the name of its home when it gave none.
        """
        row = connection.execute(_WHERE, (conversation,)).fetchone()
        return None if row is None or row[0] == self.home else str(row[1])

    def holder(self, connection: Connection, conversation: str) -> str | None:
        """Return where the host is that holds the lease of a conversation now, when that is not this one."""
        found = holder(connection, conversation)
        return (found.address or found.owner) if found is not None and found.live else None
