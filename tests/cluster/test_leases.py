"""Leases: never two owners, each epoch given once, and nothing written by one who is owner no more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from blockpty.cluster.database import Connection, Database
from blockpty.cluster.leases import HELD, Lease, Leases, holder
from blockpty.cluster.migration import migrate
from tests.support.postgres_servers import Servers

RACES = 1000
HOSTS = 4
_NOTE = f"WITH {HELD} INSERT INTO written SELECT held.conversation, %(epoch)s FROM held RETURNING 1"


@pytest.fixture
def database(postgres_servers: Servers) -> Iterator[Database]:
    with postgres_servers.databases(sharded=False) as databases:
        made = Database(databases.url)
        migrate(made)
        with made.connection() as connection:
            connection.execute("CREATE TABLE written (conversation text, epoch bigint)")
        yield made
        made.close()


def take(leases: Leases, connection: Connection, name: str) -> Lease | None:
    return leases.take(connection, [name]).get(name)


def write(database: Database, leases: Leases, lease: Lease) -> bool:
    """Write one row, as every writer does, and return whether it was let through."""
    with database.connection() as connection:
        found = connection.execute(_NOTE.encode(), {**leases.named([lease]), "epoch": lease.epoch}).fetchone()
    return found is not None


def test_a_thousand_races(database: Database) -> None:
    """Four hosts want each of a thousand conversations at the same moment; one of them gets it, and only it writes."""
    hosts = [Leases(f"host-{number}", f"http://host-{number}:7717", seconds=60) for number in range(HOSTS)]
    together = threading.Barrier(HOSTS)

    def race(leases: Leases) -> list[Lease | None]:
        taken = []
        with database.connection() as connection:
            for number in range(RACES):
                together.wait()
                taken.append(take(leases, connection, f"c{number}"))
        return taken

    with ThreadPoolExecutor(HOSTS) as pool:
        results = list(pool.map(race, hosts))
    for number in range(RACES):
        winners = [taken[number] for taken in results if taken[number] is not None]
        assert len(winners) == 1, (number, winners)
    assert len({result.owner for taken in results for result in taken if result is not None}) > 1


def test_races_for_one_conversation(database: Database) -> None:
    """Leases that are released or expire are fought for; every epoch has one owner, and an old epoch writes nothing."""
    rounds = 100
    hosts = [Leases(f"host-{number}", seconds=0.02) for number in range(HOSTS)]
    together = threading.Barrier(HOSTS)
    stop = threading.Event()

    def fight(leases: Leases) -> list[tuple[Lease, bool]]:
        had: list[tuple[Lease, bool]] = []
        together.wait()
        with database.connection() as connection:
            while not stop.is_set():
                lease = take(leases, connection, "c")
                if lease is None:
                    continue
                had.append((lease, write(database, leases, lease)))
                if lease.epoch >= rounds:
                    stop.set()
                if lease.epoch % 2:
                    leases.release(connection, [lease])
        return had

    with ThreadPoolExecutor(HOSTS) as pool:
        results = [one for had in pool.map(fight, hosts) for one in had]
    epochs = [lease.epoch for lease, _ in results]
    assert len(set(epochs)) == len(epochs)
    with database.connection() as connection:
        rows = connection.execute("SELECT epoch, count(*) FROM written GROUP BY epoch").fetchall()
    assert dict(rows) == {lease.epoch: 1 for lease, wrote in results if wrote}
    # No epoch before the last one writes any more, whichever host had it.
    last = max(epochs)
    for lease, _ in results:
        if lease.epoch < last:
            mine = next(one for one in hosts if one.owner == lease.owner)
            assert not write(database, mine, lease)


def test_who_has_it(database: Database) -> None:
    first, second = Leases("first", "http://first:7717"), Leases("second", "http://second:7717")
    with database.connection() as connection:
        assert holder(connection, "c") is None
        lease = take(first, connection, "c")
        assert lease is not None and lease.epoch == 1
        assert take(second, connection, "c") is None
        found = holder(connection, "c")
        assert found is not None and (found.owner, found.address, found.live) == ("first", "http://first:7717", True)
        assert first.renew(connection, [lease]) == {"c"}
        first.release(connection, [lease])
        found = holder(connection, "c")
        assert found is not None and not found.live
        taken = take(second, connection, "c")
        assert taken is not None and taken.epoch == 2
        assert first.renew(connection, [lease]) == set()
        first.release(connection, [lease])
        assert (found := holder(connection, "c")) is not None and found.owner == "second" and found.live


def test_an_expired_lease_that_no_host_took_is_still_ours(database: Database) -> None:
    leases = Leases("one", seconds=0)
    with database.connection() as connection:
        lease = take(leases, connection, "c")
        assert lease is not None
        assert not write(database, leases, lease)
        leases.seconds = 60
        assert leases.renew(connection, [lease]) == {"c"}
    assert write(database, leases, lease)


def test_a_write_that_is_under_way_is_finished_first(database: Database) -> None:
    """The new owner waits for the previous owner's statement, so that nothing old is written later."""
    first, second = Leases("first", seconds=0.2), Leases("second")
    with database.connection() as one:
        lease = take(first, one, "c")
        assert lease is not None
        one.execute("BEGIN")
        one.execute(_NOTE.encode(), {**first.named([lease]), "epoch": lease.epoch})
        one.execute("SELECT pg_sleep(0.25)")
        with database.connection() as other, database.connection() as third, ThreadPoolExecutor(1) as pool:
            taking = pool.submit(take, second, other, "c")
            # It is seen to wait for us.
            while not third.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                assert not taking.done()
            one.execute("COMMIT")
            taken = taking.result()
    assert taken is not None and taken.epoch == 2
    assert not write(database, first, lease)
