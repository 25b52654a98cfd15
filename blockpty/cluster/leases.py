"""Leases: a conversation is owned by one host at a time, each time with a new epoch.

Rules of this file: the database decides, in one statement each time, by its own clock; an epoch is given to one owner
once and never again; what an owner writes names its epoch, and a statement with an old one writes nothing
(`HELD`). So a host that was asleep while another took over can do no harm when it wakes up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from blockpty.cluster.database import Connection

# A common table expression for statements that write: it has a row for each conversation that this owner holds with
# this epoch, and keeps any other home from taking these over until the transaction has ended.
HELD: Final = """
held AS MATERIALIZED (
    SELECT lease.conversation
    FROM lease JOIN unnest(%(held)s::text[], %(epochs)s::bigint[]) AS mine (conversation, epoch)
      ON lease.conversation = mine.conversation AND lease.epoch = mine.epoch
    WHERE lease.owner = %(owner)s AND lease.expires > clock_timestamp()
    FOR SHARE OF lease
)"""

# ON CONFLICT locks the row that is there and then looks at its newest version, so of those who come at once each sees
# what the one before it did. The time is asked when the row is locked: that of the transaction may be long gone.
# In one order, so that two who want the same ones do not wait for each other.
_TAKE: Final = """
INSERT INTO lease (conversation, owner, address, epoch, expires)
SELECT wanted.name, %(owner)s, %(address)s, 1, clock_timestamp() + %(seconds)s * interval '1 second'
FROM unnest(%(wanted)s::text[]) AS wanted (name)
ORDER BY wanted.name
ON CONFLICT (conversation) DO UPDATE
SET owner = excluded.owner, address = excluded.address, epoch = lease.epoch + 1,
    expires = clock_timestamp() + %(seconds)s * interval '1 second'
WHERE lease.expires <= clock_timestamp() OR lease.owner = excluded.owner
RETURNING conversation, epoch
"""

_RENEW: Final = """
UPDATE lease SET expires = clock_timestamp() + %(seconds)s * interval '1 second'
FROM unnest(%(held)s::text[], %(epochs)s::bigint[]) AS mine (conversation, epoch)
WHERE lease.conversation = mine.conversation AND lease.epoch = mine.epoch AND lease.owner = %(owner)s
RETURNING lease.conversation
"""

_RELEASE: Final = """
UPDATE lease SET expires = clock_timestamp()
FROM unnest(%(held)s::text[], %(epochs)s::bigint[]) AS mine (conversation, epoch)
WHERE lease.conversation = mine.conversation AND lease.epoch = mine.epoch AND lease.owner = %(owner)s
  AND lease.expires > clock_timestamp()
"""


class Lease(Struct, frozen=True):
    """Lease that an owner holds.

    Attributes:
        conversation: its name.
        owner: who has it.
        epoch: larger than that of any owner before.
    """

    conversation: str
    owner: str
    epoch: int


class Holder(Struct, frozen=True):
    """Last holder of a conversation.

    Attributes:
        conversation: its name.
        owner: who took it.
        address: where that host's server answers; empty when it does not say.
        epoch: with which epoch.
        live: whether the lease holds now.
    """

    conversation: str
    owner: str
    address: str
    epoch: int
    live: bool


class Leases:
    """Leases of one owner; the connection is the caller's, in autocommit mode or in a transaction.

    Args:
        owner: who takes them; two that could run at the same time have two names.
        address: where clients of other hosts reach it.
        seconds: how long a lease holds without being renewed.
    """

    def __init__(self, owner: str, address: str = "", *, seconds: float = 30.0) -> None:
        self.owner = owner
        self.address = address
        self.seconds = seconds

    def take(self, connection: Connection, conversations: Iterable[str]) -> dict[str, Lease]:
        """Return the leases of those conversations that no other owner holds, each with a new epoch."""
        mine = {"owner": self.owner, "address": self.address, "seconds": self.seconds}
        rows = connection.execute(_TAKE, {"wanted": sorted(set(conversations)), **mine}).fetchall()
        return {name: Lease(name, self.owner, int(epoch)) for name, epoch in rows}

    def renew(self, connection: Connection, leases: Sequence[Lease]) -> set[str]:
        """Renew leases, also ones that ran out and that no other owner took since; return which are still ours."""
        rows = connection.execute(_RENEW, {**self.named(leases), "seconds": self.seconds}).fetchall()
        return {row[0] for row in rows}

    def release(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Let any owner take them."""
        connection.execute(_RELEASE, self.named(leases))

    def named(self, leases: Sequence[Lease]) -> dict[str, object]:
        """Return the parameters of `HELD`."""
        return {
            "owner": self.owner,
            "held": [lease.conversation for lease in leases],
            "epochs": [lease.epoch for lease in leases],
        }


def holder(connection: Connection, conversation: str) -> Holder | None:
    """Return who has a conversation, or had it last; None for a name that was never taken."""
    row = connection.execute(
        "SELECT conversation, owner, address, epoch, expires > clock_timestamp() FROM lease WHERE conversation = %s",
        (conversation,),
    ).fetchone()
    return None if row is None else Holder(*row)
