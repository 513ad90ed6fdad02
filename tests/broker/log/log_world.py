"""
A folder for tests, and one log broker after the other on it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock

from kgateway.broker.log.checkpoints import Checkpoints, Place
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.folder import DataFolder
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.settling import INTERVAL_S
from kgateway.broker.producers import EXPIRY_MS
from kgateway.interfaces import IBroker
from tests.broker.behaviour import World, result
from tests.broker.log.making import Threads, log_broker
from tests.broker.log.noted_disk import NotedDisk


class NoLock:
    """
    There is nobody else.
    """

    def __init__(self, folder: Path) -> None:
        pass

    def release(self) -> None:
        pass


class LogWorld(World):
    """
    A folder, and one log broker after the other on it.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self.path, self.disk, self.threads, self.clock = path, NotedDisk(), Threads(), Clock()
        self.boot = "a boot"
        self._options = options
        super().__init__(self._make)
        result(self.broker.start())

    def _make(self, now_ms: Callable[[], int], expiry_ms: int) -> IBroker:
        given = {"disk": self.disk, "in_thread": self.threads, "clock": self.clock, "open_folder": self._open}
        return log_broker(self.path, now_ms=now_ms, producer_expiry_ms=expiry_ms, **given | self._options)

    def _open(self, path: Path, disk: Disk, node_id: int) -> DataFolder:
        return DataFolder.open(path, disk, node_id, boot_id=lambda: self.boot, lock=NoLock)

    def restart(self, **options: Any) -> None:
        """
        Stop, and start again.
        """
        result(self.broker.stop())
        self.start(**options)

    def kill(self) -> None:
        """
        The process dies.
        """
        for file in list(self.disk.opened):
            file.close()
        self.clock = Clock()  # what was to come does not

    def killed(self) -> None:
        """
        Be killed, and start again.
        """
        self.kill()
        self.start()

    def start(self, **options: Any) -> None:
        """
        Another process.
        """
        self._options |= options
        self.broker = self._make(lambda: self.now_ms, EXPIRY_MS)
        result(self.broker.start())

    def again(self, name: str = "t", index: int = 0) -> LogPartition:
        """
        A partition, as it is now.
        """
        found = self.broker.partition(self.broker.view().topics[name].id, index)
        assert isinstance(found, LogPartition)
        return found

    def log_partition(self, name: str = "t", **config: Any) -> LogPartition:
        """
        The partition of a new topic.
        """
        self.topic(name, **config)
        return self.again(name)

    def tick(self) -> None:
        """
        It is time to settle.
        """
        self.clock.advance(INTERVAL_S)

    def told(self) -> tuple[dict[Place, int], dict[Place, int]]:
        """
        What is settled and what is synced, as the files say.
        """
        found = Checkpoints(self.path, LocalDisk(), trust_settled=True)
        return found.settled, found.synced
