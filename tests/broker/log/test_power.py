"""
The embedded log while processes are killed, disks fail, and power is lost.

POWER_SCHEDULES is the number of schedules, POWER_FIRST the seed of the first. A failure has the seed and the events;
POWER_SEED=123 repeats that schedule alone.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from twisted.logger import capturedLogs

from kgateway.broker.log.broker import LogBroker
from kgateway.broker.log.data_folder.session import FolderSession
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.recovery import segment_recovery
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import integer
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.interfaces import IBroker
from kgateway.wire import uuids
from tests.broker.log.log_world import NoLock
from tests.broker.log.lossy_disk import PowerLoss
from tests.broker.log.power_machine import Machine
from tests.broker.log.power_schedule import Schedule

SCHEDULES = int(os.environ.get("POWER_SCHEDULES", "150"))
FIRST = int(os.environ.get("POWER_FIRST", "0"))
ONE = os.environ.get("POWER_SEED")
SEEDS = [int(ONE)] if ONE else range(FIRST, FIRST + SCHEDULES)

_TOLD = 60


def make(machine: Machine) -> IBroker:
    """
    The broker of a machine, not started.
    """

    def open_session(path: Path, disk: Disk, node_id: int) -> FolderSession:
        return FolderSession.open(path, disk, node_id, boot_id=machine.boot_id, lock=NoLock)

    return LogBroker(
        Path("/data"),
        node_id=1,
        now_ms=machine.now_ms,
        clock=machine.clock,
        in_thread=machine.in_thread,
        in_turns=machine.in_turns,
        disk=machine.disk,
        open_session=open_session,
        open_files_max=machine.chance.choice((3, 2000)),
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Make segments small and slices short.
    """
    row = TOPIC_CONFIGS["segment.bytes"]
    monkeypatch.setitem(TOPIC_CONFIGS, row.name, replace(row, kind=integer(1)))
    monkeypatch.setattr(segment_recovery, "_BATCHES_A_STEP", 2)


def failures(schedule: Schedule) -> Iterator[str]:
    """
    Faults of a schedule, and bugs that were logged.
    """
    with capturedLogs() as logged:
        try:
            schedule.run()
        except Exception as error:
            yield f"{type(error).__name__}: {error}"
    for event in logged:
        failure = event.get("log_failure")
        if failure and not failure.check(PowerLoss):
            yield failure.getTraceback()
        for reference in ("log_source", "log_logger", "log_failure"):
            event.pop(reference, None)  # Twisted keeps the last events, each of which would keep its broker and disk


@pytest.mark.usefixtures("small", "power_goes")
@pytest.mark.parametrize("half", range(2))  # for two processes
def test_power_loss(half: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Whenever the process or the machine ends, and whatever the disk refuses, acknowledged records are there as far as
    promised, and the log is a prefix of what was sent, each batch once, in order, and whole.
    """
    for seed in SEEDS[half::2]:
        monkeypatch.setattr(uuids, "token_bytes", Random(seed).randbytes)
        schedule = Schedule(seed, make, TopicConfig.of)
        wrong = [*failures(schedule)]
        if wrong:
            trace = schedule.trace if ONE else schedule.trace[-_TOLD:]
            told = "\n".join([*trace, *wrong])
            pytest.fail(f"POWER_SEED={seed} does this again:\n{told}", pytrace=False)
