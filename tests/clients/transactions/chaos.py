"""
Copiers of one client and a gateway are killed with -9 at random, and copiers are replaced by others with the same
transactional id; then the copies are checked.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic, sleep
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.kafka.servers import free_port
from kgateway.testing.kafka import Kafka
from tests.clients.transactions.copier import Copier, Life
from tests.clients.transactions.copy_check import faults
from tests.clients.transactions.input_topic import InputTopic
from tests.clients.transactions.kinds import command
from tests.clients.transactions.topic_views import read, read_both
from tests.clients.transactions.workers.reports import Wanted

SERVER_OPTIONS = (
    *("--group-min-session-timeout-ms", "1000"),
    *("--group-initial-rebalance-delay-ms", "100"),
    *("--log-level", "warn"),
)
INPUT, OUTPUT, GROUP = "input", "output", "copiers"
PARTITIONS, WORKERS = 6, 3
PATIENCE_S = 90
FAULTS_SHOWN = 20
_PAUSES_S = (0.1, 0.8)
_MOMENTS = 6  # the longest time between two kills of the server
_KILLED, _TWINS = 0.25, 0.35  # the probability at each moment
# Why a copier may end by itself, in its client's words: it is fenced, or there is no server.
_BY_RIGHTS = re.compile("fenced|epoch|connect|dial|eof", re.IGNORECASE)
# A replaced copier may report this, too: Kafka answers its commit so until the next producer has begun.
_BY_RIGHTS_OF_REPLACED = re.compile("invalid_?txn_?state", re.IGNORECASE)


class Chaos:
    """
    Copiers that copy in a `with` block.
    """

    def __init__(self, kafka: Kafka, kind: str, seed: int, folder: Path) -> None:
        self._kafka = kafka
        self._chance = Random(f"{seed} {kind}")
        self._log = folder / "copiers.log"
        self._kills: Counter[str] = Counter()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in (INPUT, OUTPUT)]).values():
            made.result(PATIENCE_S)
        self._input = InputTopic(kafka.bootstrap, INPUT, PARTITIONS, self._chance)
        self._copiers = [Copier(command(kind), self._wanted(number, seed), self._log) for number in range(WORKERS)]

    def rage(self, kills: int) -> None:
        """
        Kill the server this often, and copiers more often.
        """
        for _ in range(kills):
            for _ in range(self._chance.randrange(1, _MOMENTS + 1)):
                self._input.write(3)
                sleep(self._chance.uniform(*_PAUSES_S))  # at a random moment of their work
                self._befall(self._chance.choice(self._copiers))
            self._kafka.kill()
            self._kafka.start()
            self._kills["server"] += 1

    def settle(self) -> None:
        """
        Wait until everything is copied. A replaced copier finds out with its next transaction, and ends.
        """
        self._wait(self._are_replaced_gone, "each copier that was replaced has ended")
        self._wait(self._is_all_copied, "all is copied")
        for copier in self._copiers:
            copier.stop()

    def faults(self) -> list[str]:
        """
        The faults, once everything has settled.
        """
        written, copied = (read_both(self._kafka.bootstrap, topic, PARTITIONS) for topic in (INPUT, OUTPUT))
        given = len(written.committed)
        assert given == self._input.count, f"{self._input.count} records are committed in the input, {given} read"
        told = {mark: done for life in self._lives for mark, done in life.outcomes.items()}
        print(
            f"{given} records and {len(written.everything) - given} aborted; "
            f"written {len(copied.everything)}, committed {len(copied.committed)}; {Counter(told.values())[True]} "
            f"commits, {Counter(told.values())[False]} aborts; killed {dict(self._kills)}, {len(self._lives)} lives, "
            f"ended by themselves {dict(Counter(life.why for life in self._lives if life.why))}"
        )
        oddly = [f"{life.how.id}/{life.how.seed}: ended by itself, {life.why}" for life in self._lives if _is_odd(life)]
        return [*faults(written, copied, told), *oddly]

    def _befall(self, copier: Copier) -> None:
        turn = self._chance.random()
        if turn < _KILLED:
            copier.kill()
            self._kills["copiers"] += 1
        elif turn < _KILLED + _TWINS:
            copier.twin()
            self._kills["twins"] += 1

    def _wanted(self, number: int, seed: int) -> Wanted:
        partitions = list(range(number, PARTITIONS, WORKERS))
        name = f"copier-{number}"
        return Wanted(self._kafka.bootstrap, INPUT, OUTPUT, GROUP, name, seed * WORKERS + number, partitions)

    @property
    def _lives(self) -> list[Life]:
        return [life for copier in self._copiers for life in copier.lives]

    def _are_replaced_gone(self) -> bool:
        self._input.write(1)
        return all(copier.are_replaced_gone for copier in self._copiers)

    def _is_all_copied(self) -> bool:
        return len(read(self._kafka.bootstrap, OUTPUT, PARTITIONS, "read_committed")) >= self._input.count

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        deadline = monotonic() + PATIENCE_S
        while not holds():
            assert monotonic() < deadline, f"not {what}:\n{self._report()}"
            sleep(0.5)

    def _report(self) -> str:
        lives = [f"{life.how.id}/{life.how.seed} ended {life.has_ended}: {life.why}" for life in self._lives[-30:]]
        return "\n".join([*lives, self._log.read_text(errors="replace")[-4_000:]])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for copier in self._copiers:
            copier.stop()


def _is_odd(life: Life) -> bool:
    if not life.why or _BY_RIGHTS.search(life.why):
        return False
    return not (life.was_replaced and _BY_RIGHTS_OF_REPLACED.search(life.why))


def run(kind: str, kills: int, seed: int, folder: Path, *options: str) -> None:
    """
    Run the chaos and check the copies, with a gateway of these options that keeps its address after each kill.
    """
    listen = f"tcp:{free_port()}:interface=127.0.0.1"
    kafka = Kafka("--listen", listen, "--broker", f"log:{folder / 'data'}", *SERVER_OPTIONS, *options, folder=folder)
    with kafka, Chaos(kafka, kind, seed, folder) as chaos:
        chaos.rage(kills)
        chaos.settle()
        found = chaos.faults()
    assert not found, f"with TRANSACTION_SEED={seed}, {len(found)} faults:\n" + "\n".join(found[:FAULTS_SHOWN])
    assert "Traceback" not in kafka.log, kafka.log
