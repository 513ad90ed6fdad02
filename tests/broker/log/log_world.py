"""
A folder, and successive log brokers on it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock

from kgateway.broker.log.checkpointer import INTERVAL_S
from kgateway.broker.log.data_folder.checkpoints import Checkpoints
from kgateway.broker.log.data_folder.session import FolderSession
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.partition.producer_state import EXPIRY_MS
from kgateway.interfaces import IBroker
from kgateway.topic_partition import TopicPartition
from tests.broker.behaviour import World, result
from tests.broker.log.log_brokers import Threads, log_broker
from tests.broker.log.recording_disk import RecordingDisk


class NoLock:
    def __init__(self, folder: Path) -> None:
        pass

    def release(self) -> None:
        pass


class LogWorld(World):
    def __init__(self, path: Path, **options: Any) -> None:
        self.path, self.disk, self.threads, self.clock = path, RecordingDisk(), Threads(), Clock()
        self.boot = "a boot"
        self._options = options
        super().__init__(self._make)
        result(self.broker.start())

    def _make(self, now_ms: Callable[[], int], expiry_ms: int) -> IBroker:
        given = {"disk": self.disk, "in_thread": self.threads, "clock": self.clock, "open_session": self._open}
        return log_broker(self.path, now_ms=now_ms, producer_expiry_ms=expiry_ms, **given | self._options)

    def _open(self, path: Path, disk: Disk, node_id: int) -> FolderSession:
        return FolderSession.open(path, disk, node_id, boot_id=lambda: self.boot, lock=NoLock)

    def restart(self, **options: Any) -> None:
        result(self.broker.stop())
        self.start(**options)

    def kill(self) -> None:
        for file in list(self.disk.opened):
            file.close()
        self.clock = Clock()  # timers of a killed process do not fire

    def killed(self) -> None:
        self.kill()
        self.start()

    def start(self, **options: Any) -> None:
        self._options |= options
        self.broker = self._make(lambda: self.now_ms, EXPIRY_MS)
        result(self.broker.start())

    def again(self, name: str = "t", index: int = 0) -> LogPartition:
        found = self.broker.partition(self.broker.view().topics[name].id, index)
        assert isinstance(found, LogPartition)
        return found

    def log_partition(self, name: str = "t", **config: Any) -> LogPartition:
        self.topic(name, **config)
        return self.again(name)

    def tick(self) -> None:
        """
        Let the time of a checkpoint pass.
        """
        self.clock.advance(INTERVAL_S)

    def told(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """
        The settled and the synced offsets in the files.
        """
        found = Checkpoints(self.path, LocalDisk(), trust_settled=True)
        return found.settled, found.synced
