"""
Group configs in a file of their own, which survives the process and is synced.
"""

import json
from collections.abc import Callable
from errno import EACCES, ENOSPC
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from crc32c import crc32c
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import LogLevel, capturedLogs

from kgateway.broker.log.data_folder.config_file import CONFIGS, ConfigFile
from kgateway.broker.log.data_folder.folder_error import FolderError
from kgateway.broker.log.data_folder.session import CLEAN
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.cluster.config_resource import AllOverrides, Change, Overrides, group
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import HEARTBEAT, SESSION, refusal, result, setting
from tests.broker.log.log_world import LogWorld
from tests.broker.log.lossy_disk import LossyDisk, PowerLoss

G, H = group("g"), group("h\n\u00e4\U0001f600")
pytestmark = pytest.mark.usefixtures("power_goes")

DATA = Path("/data")


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def configure(world: LogWorld, timeout_ms: int, resource: Any = G) -> Deferred[None]:
    return world.broker.change_config(resource, setting(session_timeout=timeout_ms))


def overrides(world: LogWorld) -> AllOverrides:
    return world.broker.view().overrides


@pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])
def test_configs_outlive_the_process(again: Callable[[LogWorld], None], world: LogWorld) -> None:
    """
    Set configs are there after a restart, and removed ones are not, whether the process was stopped or killed.
    """
    for resource, timeout_ms in ((G, 50_000), (H, 55_000), (group("gone"), 60_000)):
        result(configure(world, timeout_ms, resource))
    result(world.broker.change_config(G, setting(heartbeat_interval=6_000)))
    result(world.broker.change_config(group("gone"), lambda _: {}))
    found = {G: {SESSION: "50000", HEARTBEAT: "6000"}, H: {SESSION: "55000"}}
    for _ in range(2):
        again(world)
        assert overrides(world) == found
    with pytest.raises(TypeError):
        overrides(world)[G][SESSION] = "1"  # type: ignore[index]  # that is what is asked
    result(world.broker.change_config(G, lambda _: {}))
    again(world)
    assert overrides(world) == {H: {SESSION: "55000"}}


def test_nothing_is_written_for_nothing(world: LogWorld) -> None:
    """
    There is no file if nothing was ever set, and none is written if nothing changes. Each change is synced.
    """
    result(world.broker.change_config(G, lambda _: {}))
    assert not (world.path / CONFIGS).exists()
    for written in (1, 1):
        result(configure(world, 50_000))
        assert world.disk.count("sync", CONFIGS) == written


def test_the_file(world: LogWorld) -> None:
    """
    It can be read by people, and its first line identifies it.
    """
    result(configure(world, 50_000))
    line = b'{"kind": "GROUP", "name": "g", "config": {"consumer.session.timeout.ms": "50000"}}\n'
    assert (world.path / CONFIGS).read_bytes() == b"%08x\n%s" % (crc32c(line), line)


def flipped(data: bytes) -> bytes:
    return data.replace(b"50000", b"10000")


@pytest.mark.parametrize(
    "damage",
    [flipped, lambda data: data[:-1], lambda data: data[9:], lambda _: b"", lambda data: bytes(len(data)), bytes.upper],
    ids=["flipped", "cut", "no CRC", "empty", "zeroes", "upper case"],
)
def test_a_damaged_file_is_refused(damage: Callable[[bytes], bytes], world: LogWorld) -> None:
    """
    A start does not guess what was set; once the operator has decided, it succeeds. The folder is unchanged.
    """
    result(configure(world, 50_000))
    result(world.broker.stop())
    path = world.path / CONFIGS
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    with pytest.raises(FolderError) as error:
        world.start()
    assert str(error.value) == (
        f"{path} is damaged; restore it from a copy, or remove it: groups and brokers then have no configs of their "
        "own and use the gateway's settings"
    )
    assert (world.path / CLEAN).exists()
    path.write_bytes(whole)
    world.start()
    assert overrides(world) == {G: {SESSION: "50000"}}
    result(world.broker.stop())
    path.unlink()
    world.start()
    assert overrides(world) == {}


def checked(*rows: object) -> bytes:
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return b"%08x\n%s" % (crc32c(lines), lines)


@pytest.mark.parametrize(
    "row",
    [
        {"kind": "PLANET", "name": "g", "config": {}},
        {"kind": "TOPIC", "name": "g", "config": {}},
        {"kind": "GROUP", "name": "g", "config": {"consumer.mood": "1"}},
        {"kind": "GROUP", "name": "g", "config": {SESSION: "long"}},
        {"kind": "GROUP", "name": "g", "config": {SESSION: 50_000}},
        {"kind": "GROUP", "name": "g", "config": None},
        {"kind": "GROUP", "config": {}},
        {"kind": "GROUP", "name": 7, "config": {}},
        [],
        7,
    ],
    ids=str,
)
def test_a_file_of_a_newer_gateway_is_refused(row: object, tmp_path: Path) -> None:
    """
    A valid file with unknown content is that of a newer gateway.
    """
    path = tmp_path / CONFIGS
    path.write_bytes(checked({"kind": "GROUP", "name": "h", "config": {SESSION: "50000"}}, row))
    with pytest.raises(FolderError) as error:
        ConfigFile.open(path, LocalDisk())
    assert (
        str(error.value)
        == f"{path} has {json.dumps(row)}, which this version of kgateway does not know; start a newer one"
    )


def test_a_file_that_cannot_be_read_is_refused(world: LogWorld) -> None:
    """
    An existing file that cannot be read is not taken for missing.
    """
    world.disk.failing[f"read {CONFIGS}"] = EACCES
    with pytest.raises(FolderError, match=r"kgateway.configs cannot be opened: Permission denied; let the user"):
        world.restart()


@pytest.mark.parametrize("operation", ["write", "sync"])
@pytest.mark.parametrize("was_set", [True, False])
def test_a_failing_disk(operation: str, was_set: bool, world: LogWorld) -> None:
    """
    A change that cannot be synced is refused, not shown, and not there after a restart; the next one is made once the
    disk accepts it. The log has the beginning and the end.
    """
    before = {G: {SESSION: "50000"}} if was_set else {}
    if was_set:
        result(configure(world, 50_000))
    world.disk.failing[f"{operation} {CONFIGS}"] = ENOSPC
    with capturedLogs() as logged:
        error = refusal(lambda: configure(world, 55_000))
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert str(error.message).startswith("no config can be changed: No space left on device")
        assert overrides(world) == before
        world.disk.failing.clear()
        world.killed()
        assert overrides(world) == before
        assert [event["log_level"] for event in logged] == [LogLevel.critical]
    result(configure(world, 60_000))
    assert overrides(world) == {G: {SESSION: "60000"}}


def test_the_end_of_trouble_is_told(world: LogWorld) -> None:
    """
    The first successful write is logged.
    """
    world.disk.failing["write"] = ENOSPC
    refusal(lambda: configure(world, 50_000))
    world.disk.failing.clear()
    with capturedLogs() as logged:
        result(configure(world, 50_000))
    assert [(event["log_level"], event["what"]) for event in logged] == [(LogLevel.info, CONFIGS)]


class TestSlowDisk:
    """
    A disk that takes its time.
    """

    def test_a_change_is_shown_when_it_lasts(self, world: LogWorld) -> None:
        """
        Nobody sees a change that is not durable.
        """
        world.threads.slow = True
        made = configure(world, 50_000)
        assert not made.called
        assert overrides(world) == {}
        world.threads.work()
        assert made.called
        assert overrides(world) == {G: {SESSION: "50000"}}

    def test_one_after_the_other(self, world: LogWorld) -> None:
        """
        Each change sees the result of the one before, and those that arrive meanwhile are written together.
        """
        world.threads.slow = True
        seen = list[Overrides]()

        def add(value: int, before: Overrides) -> Overrides:
            seen.append(dict(before))
            return {**before, f"n{value}": str(value)}

        made = [world.broker.change_config(G, partial(add, value)) for value in range(4)]
        assert (len(seen), len(world.threads)) == (1, 1)
        world.threads.work()
        assert [done.called for done in made] == [True, False, False, False]
        assert (len(seen), len(world.threads)) == (4, 1)
        world.threads.work()
        assert all(done.called for done in made)
        assert [len(before) for before in seen] == [0, 1, 2, 3]
        assert overrides(world) == {G: {f"n{value}": str(value) for value in range(4)}}
        assert len(world.threads) == 0

    def test_refused_among_others(self, world: LogWorld) -> None:
        """
        A change that refuses, one that fails, and a disk that fails for a while stop no other change.
        """
        world.threads.slow = True
        told = list[object]()

        def refuse(error: Exception, _: Overrides) -> Overrides:
            raise error

        errors = [KafkaError(ErrorCode.INVALID_CONFIG, "no"), ValueError("a mistake of ours")]
        changes: list[Change] = [partial(refuse, error) for error in errors]
        for change in (setting(session_timeout=50_000), *changes, setting(heartbeat_interval=6_000)):
            world.broker.change_config(G, change).addBoth(
                lambda outcome: told.append(getattr(outcome, "value", outcome))
            )
        world.disk.failing["write"] = ENOSPC
        world.threads.work()
        assert str(told.pop(0)).startswith("KAFKA_STORAGE_ERROR")
        assert told == errors
        world.disk.failing.clear()
        world.threads.work()
        assert told == [*errors, None]
        assert overrides(world) == {G: {HEARTBEAT: "6000"}}

    def test_who_waits_no_more(self, world: LogWorld) -> None:
        """
        A change is made even if its client has disconnected.
        """
        world.threads.slow = True
        made = configure(world, 50_000)
        made.cancel()
        with pytest.raises(CancelledError):
            result(made)
        world.threads.work()
        assert overrides(world) == {G: {SESSION: "50000"}}

    def test_a_stop_waits(self, world: LogWorld) -> None:
        """
        Accepted changes are written before the folder is released, and no more are accepted.
        """
        world.threads.slow = True
        made = [configure(world, timeout_ms) for timeout_ms in (50_000, 60_000)]
        stopped = world.broker.stop()
        error = refusal(lambda: configure(world, 55_000))
        assert str(error) == "KAFKA_STORAGE_ERROR: no config can be changed: the gateway is stopping"
        world.threads.work()
        assert not stopped.called
        world.threads.work()
        assert all(done.called for done in made)
        world.threads.slow = False
        while len(world.threads):
            world.threads.work()
        assert stopped.called
        world.start()
        assert overrides(world) == {G: {SESSION: "60000"}}


@pytest.mark.parametrize("seed", range(20))
def test_power_cuts(seed: int) -> None:
    """
    After a power loss at any moment acknowledged changes are there, and others are there completely or not at all.
    """
    chance = Random(seed)
    disk = LossyDisk(chance)
    disk.make_folder(DATA)
    disk.sync_folder(DATA.parent)
    acknowledged: AllOverrides = {}
    doubtful: AllOverrides = {}
    for _ in range(20):
        disk.stop_after(chance.randint(0, 12))
        try:
            file = ConfigFile.open(DATA / CONFIGS, disk)
            assert file.overrides in (acknowledged, doubtful)
            acknowledged = file.overrides
            while True:
                doubtful = {G: {SESSION: str(chance.randint(1, 1 << 30))}} if chance.random() < 0.8 else {}
                file.write(doubtful)
                acknowledged = doubtful
        except PowerLoss:
            disk = disk.crash()
    assert ConfigFile.open(DATA / CONFIGS, disk).overrides in (acknowledged, doubtful)
