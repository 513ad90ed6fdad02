"""
kill -9 loses nothing that was acknowledged.

A server under load is killed at random moments and restarted at once, while its clients go on. Then everything is
accounted for. CRASHES is the number of kills, three by default. With KAFKA_JARS, Kafka's own tool also reads the data
folder that crashes and a clean stop have left.

CRASH_SEED repeats the choices of a failure, which names it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from random import SystemRandom
from statistics import median
from time import monotonic

from tests.faults.accounting import Accounts
from tests.faults.crashes import Crashes
from tests.faults.dump import Dump
from tests.faults.ledger import PartitionName

CRASHES = int(os.environ.get("CRASHES", "3"))
SEED = os.environ.get("CRASH_SEED") or str(SystemRandom().randrange(1 << 32))
HAS_KAFKA = "KAFKA_JARS" in os.environ
_CHECK_EVERY = 10  # crashes per reading
_FAULTS_SHOWN = 20


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """
    Through crashes each acknowledged record stays at its offset, in order, and once if its producer is idempotent;
    topics are as they were acknowledged, and no consumer sees the log end decrease.
    """
    print(f"\nCRASH_SEED={SEED}")
    crashes = Crashes(tmp_path, SEED)
    server, dump = crashes.server, Dump(crashes.server.data)
    try:
        crashes.begin()
        while server.kills < CRASHES:
            crashes.clients.go_on()
            due = min(server.kills + _CHECK_EVERY, CRASHES)
            while server.kills < due:
                server.crash()
                demand_no_faults(crashes)
                if server.kills >= due:
                    read_by_kafka(crashes, dump)
                crashes.start()
            print(report(crashes, crashes.clients.check()))
            demand_no_faults(crashes)
        ends = {place: len(crashes.clients.follower.seen[place]) for place in crashes.places}
        server.kill()
        read_by_kafka(crashes, dump, ends)
        server.start()
        crashes.finish()
        read_by_kafka(crashes, Dump(server.data), ends)
        demand_no_faults(crashes)
    finally:
        crashes.give_up()


def demand_no_faults(crashes: Crashes) -> None:
    """
    Fail if there are faults.
    """
    found = crashes.faults()
    more = f"\nand {len(found) - _FAULTS_SHOWN} more" if len(found) > _FAULTS_SHOWN else ""
    shown = "\n".join(found[:_FAULTS_SHOWN])
    assert not found, f"after {crashes.server.kills} crashes, with CRASH_SEED={SEED}:\n{shown}{more}"


def read_by_kafka(crashes: Crashes, dump: Dump, ends: Mapping[PartitionName, int] | None = None) -> None:
    """
    Have Kafka's tool read the data of the dead server; with `ends` everything, up to these offsets.
    """
    if not HAS_KAFKA:
        return
    began = monotonic()
    dump.read()
    segments = dump.segments
    for place, end in (ends or {}).items():
        last = segments[place][-1]
        if last.following != end or not last.is_whole:
            dump.faults.append(f"{place}: Kafka reads to {last.following}, and it goes to {end}")
    crashes.ledger.faults += [f"Kafka: {fault}" for fault in dump.faults]
    print(f"Kafka has read {dump.files} files, the last of them in {monotonic() - began:.1f} s")


def report(crashes: Crashes, accounts: Accounts) -> str:
    """
    A summary of the run.
    """
    server, times = crashes.server, sorted(crashes.server.start_times_s)
    size = sum(
        path.stat().st_size for topic in ("plain", "synced", "small") for path in server.files(f"{topic}-?/*.log")
    )
    segments = len(server.files("small-?/*.log"))
    torn = server.log.count("truncated: a batch was being written")
    return (
        f"{server.kills} crashes; {crashes.ledger.promises:,} promises; {accounts.records:,} records, "
        f"{accounts.repeats} of them repeats, {size >> 20} MiB, {segments} small segments; {torn} writes cut in two; "
        f"{crashes.clients.repeater.repeated} batches sent again; {crashes.topics.changes} changes of topics, "
        f"{crashes.topics.checks} checks; {crashes.clients.ends.asked} watermarks; "
        f"started in {median(times):.2f} s, at most {times[-1]:.2f}"
    )
