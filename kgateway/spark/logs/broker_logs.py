"""
Logs on the servers of a cluster, read by Kafka's protocol. The next batches are fetched while a task decodes some.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kgateway.client.cluster import NO_TOPIC, SETTLING_S, Cluster, refuse
from kgateway.client.connection import Address, Unanswered
from kgateway.client.fetcher import Fetched, Fetcher
from kgateway.client.offsets import EARLIEST, LATEST, Extent, Offsets, extents_between, offsets_at
from kgateway.messages.metadata import MetadataResponse
from kgateway.spark.errors import TopicGone, Unreadable
from kgateway.spark.logs.interface import AbortedTransactions, OffsetGone, Window
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError
from kgateway.wire.uuids import Uuid

T = TypeVar("T")

_log = logging.getLogger(__name__)
_WAIT_MS = 500


@dataclass(frozen=True, slots=True)
class Servers:
    """
    The addresses of a cluster, and the settings for reading it.
    """

    bootstrap: tuple[Address, ...]
    committed_only: bool = False
    answer_s: float = 30.0  # the longest that a server may take for an answer
    patience_s: float = 120.0  # how long failing attempts are made again
    fetch_bytes: int = 8 << 20

    def __str__(self) -> str:
        return ",".join(map(str, self.bootstrap))


class SameTopics(Cluster):
    """
    A cluster whose topics must remain those that were seen first: one that is deleted and created again under its name
    is another one.
    """

    def __init__(self, servers: Servers) -> None:
        super().__init__(servers.bootstrap, servers.patience_s, servers.answer_s)
        self.topic_ids: dict[str, Uuid] = {}

    def metadata(self, topics: Iterable[str] | None, *, may_create: bool = False) -> MetadataResponse:
        metadata = super().metadata(topics, may_create=may_create)
        for topic in metadata.topics:
            if topic.error_code in NO_TOPIC:
                continue
            refuse(topic.error_code)
            if self.topic_ids.setdefault(topic.name or "", topic.topic_id) != topic.topic_id:
                raise TopicGone(f"topic {topic.name} was deleted and recreated while it was being read")
        return metadata


class ServerLogs:
    def __init__(self, servers: Servers) -> None:
        self.cluster = SameTopics(servers)
        self._servers = servers

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[TopicPartition]]:
        names = None if topics is None else list(topics)
        metadata = self._retry(partial(self.cluster.metadata, names), "the list of topics")
        return {
            topic.name or "": sorted(TopicPartition(topic.name or "", one.partition_index) for one in topic.partitions)
            for topic in metadata.topics
            if topic.error_code not in NO_TOPIC and not (topics is None and topic.is_internal)
        }

    def extents(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, Extent]:
        return extents_between(self.at_time(wanted, EARLIEST), self.at_time(wanted, LATEST))

    def at_time(self, wanted: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        isolation = {"must_exist": True, "committed_only": self._servers.committed_only}
        attempt = partial(offsets_at, self.cluster, wanted, timestamp_ms, **isolation)
        return self._retry(attempt, f"the offsets of {', '.join(sorted({one.topic for one in wanted}))}")

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        """
        The batches that have these offsets, always fetched one answer ahead.
        """
        positions = {wanted.partition: wanted.start}
        servers = self._servers
        fetcher = Fetcher(
            self.cluster, positions, part_bytes=servers.fetch_bytes, committed_only=servers.committed_only
        )
        with ThreadPoolExecutor(1, thread_name_prefix="kgateway-fetch") as thread:
            coming = thread.submit(self._next, fetcher, wanted.partition)
            while window := coming.result():
                if window.next_offset < wanted.end:
                    coming = thread.submit(self._next, fetcher, wanted.partition)
                yield window
                if window.next_offset >= wanted.end:
                    return

    def __str__(self) -> str:
        return f"the cluster at {self._servers}"

    def close(self) -> None:
        self.cluster.close()

    def _next(self, fetcher: Fetcher, partition: TopicPartition) -> Window | None:
        """
        The next batches; None if the log has ended there for a while.
        """
        began, position = time.monotonic(), fetcher.positions[partition]
        while True:
            fetched = self._retry(partial(self._fetch, fetcher), str(partition))
            if fetched.batches:
                fetcher.positions[partition] = fetched.batches[-1].header.last_offset + 1
                return Window(fetched.batches, AbortedTransactions(fetched.aborted), fetcher.positions[partition])
            waited = time.monotonic() - began
            # A new leader may learn only a little later how far its log may be read.
            if fetched.readable <= position and waited >= SETTLING_S:
                return None
            if waited >= self._servers.patience_s:
                raise Unreadable(
                    f"{partition} has no batch at offset {position}, although it ends at {fetched.readable}"
                )

    def _fetch(self, fetcher: Fetcher) -> Fetched:
        """
        OffsetGone if the log no longer has the offset, or does not have it yet.
        """
        [fetched] = fetcher.fetch(_WAIT_MS)
        if fetched.is_out_of_range:
            position, extent = (
                fetcher.positions[fetched.partition],
                self.extents([fetched.partition])[fetched.partition],
            )
            if not extent.start <= position <= extent.end:
                raise OffsetGone(position, extent)
            return fetched._replace(readable=extent.end)
        return fetched

    def _report(self, what: str, error: Exception, patience_s: float) -> None:
        """
        Log that no server responds; other failures that are retried, such as elections, are short.
        """
        if isinstance(error, Unanswered):
            _log.warning("cannot get %s from %s: %s; retrying for %.0f s", what, self._servers, error, patience_s)

    def _retry(self, attempt: Callable[[], T], what: str) -> T:
        """
        Make an attempt until patience ends, and word its failure for the user.
        """
        began = time.monotonic()
        try:
            return self.cluster.retry(attempt, reconnect=True, report=partial(self._report, what))
        except (Unanswered, KafkaError) as error:
            code = error.code if isinstance(error, KafkaError) else None
            if isinstance(error, KafkaError):
                reason = f"{error.message or error.code.meaning} ({error.code.name})"
            else:
                reason = str(error)
            tried = f", tried for {time.monotonic() - began:.0f} s" if code is None or code.retriable else ""
            kind = TopicGone if code in NO_TOPIC else Unreadable
            raise kind(f"cannot get {what} from {self._servers}{tried}: {reason}") from error
