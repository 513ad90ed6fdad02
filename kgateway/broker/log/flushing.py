"""
What nobody waits for: syncs as often as `flush.messages` and `flush.ms` ask for them, and a disk that begins to write
before there is so much to write that writers have to wait for it.
"""

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall

from kgateway.broker.log.partition_log import PartitionLog
from kgateway.broker.log.parts import LogParts
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX

EARLY_BYTES = 8 << 20


class Flushing:
    """
    That of one partition.
    """

    __slots__ = ("_count", "_log", "_next", "_parts", "_sync", "_writing")

    def __init__(self, log: PartitionLog, parts: LogParts, sync: Callable[[], None]) -> None:
        self._log = log
        self._parts = parts
        self._sync = sync
        self._count = 0  # records since the last sync was asked for
        self._next: IDelayedCall | None = None
        self._writing = False

    def wrote(self, config: TopicConfig, count: int) -> None:
        """
        So many records were appended.
        """
        self._count += count
        self._sync_in_time(config)
        self._write_early()

    def configured(self, config: TopicConfig) -> None:
        """
        What was appended and is not synced is so by this config now.
        """
        if self._count:
            self._wait_no_more()
            self._sync_in_time(config)

    def stop(self) -> None:
        """
        Ask for nothing any more.
        """
        self._count = 0
        self._wait_no_more()

    def _sync_in_time(self, config: TopicConfig) -> None:
        if self._count >= config.flush_messages:
            self._now()
        elif self._next is None and config.flush_ms < LONG_MAX:
            self._next = self._parts.clock.callLater(config.flush_ms / 1000, self._now)

    def _wait_no_more(self) -> None:
        if self._next and self._next.active():
            self._next.cancel()
        self._next = None

    def _now(self) -> None:
        self.stop()
        self._sync()

    def _write_early(self) -> None:
        segment = self._log.segments[-1]
        part = None if self._writing else segment.early(EARLY_BYTES)
        if part:
            self._writing = True
            file = self._parts.files.hold(segment.path)

            def done(_: object) -> None:
                self._writing = False
                self._parts.files.let_go(file)

            self._parts.in_thread(lambda: file.write_early(*part)).addBoth(done)
