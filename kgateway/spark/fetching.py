"""
The batches of a partition, from the server that leads it. While a task decodes some, the next are on their way.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from kgateway.client.cluster import Cluster, refuse
from kgateway.client.offsets import Partition
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.records.batch import batches
from kgateway.spark.aborted import Aborted
from kgateway.spark.failures import Unreadable
from kgateway.spark.leaders import Leaders, Led
from kgateway.spark.listing import Listing
from kgateway.spark.logs import Gone, Window
from kgateway.spark.patience import SETTLING_S, PatientCluster
from kgateway.spark.ranges import OffsetRange
from kgateway.wire.errors import ErrorCode
from kgateway.wire.types import Buffer

_WAIT_MS = 500
_BY_NAME = 12  # the last version of Fetch that names topics
_Told = FetchResponse.Response.Partition


def ahead(fetcher: "Fetcher", wanted: OffsetRange) -> Iterator[Window]:
    """
    The batches that have these offsets, always fetched one answer ahead.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="kgateway-fetch") as thread:
        coming = thread.submit(fetcher.fetch, wanted.start)
        while found := coming.result():
            position = found.next_offset
            if position < wanted.end:
                coming = thread.submit(fetcher.fetch, position)
            yield found
            if position >= wanted.end:
                return


class Fetcher:
    """
    Reads one partition, of whoever leads it.
    """

    def __init__(self, asking: PatientCluster, leaders: Leaders, listing: Listing, partition: Partition) -> None:
        self._asking = asking
        self._servers = asking.servers
        self._leaders = leaders
        self._listing = listing
        self._partition = partition
        self._led: Led | None = None

    def fetch(self, position: int) -> Window | None:
        """
        The next batches; `None` where the log ends there, and has done so for a while.
        """
        began, what = time.monotonic(), str(self._partition)
        while True:
            window, readable = self._asking.settled(lambda cluster: self._attempt(cluster, position), what)
            if window:
                return window
            waited = time.monotonic() - began
            # A new leader may know a little later only how far its log is good.
            if readable <= position and waited >= SETTLING_S:
                return None
            if waited >= self._servers.patience_s:
                raise Unreadable(f"{self._partition} has no batch at offset {position}, though it ends at {readable}")

    def _attempt(self, cluster: Cluster, position: int) -> tuple[Window | None, int]:
        """
        What there is, and how far the log may be read. After a failure the leader is looked for anew.
        """
        led, self._led = self._led or self._leaders.of(cluster, [self._partition])[self._partition], None
        told = self._asked(cluster, led, position)
        if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            extent = self._listing.extents([self._partition])[self._partition]
            if not extent.start <= position <= extent.end:
                raise Gone(position, extent)
            return None, extent.end
        refuse(told.error_code)
        self._led = led
        found = list(batches(cast(Buffer, told.records), cut_tail=True)) if told.records else []
        aborted = Aborted((one.producer_id, one.first_offset) for one in told.aborted_transactions or ())
        readable = told.last_stable_offset if self._servers.committed_only else told.high_watermark
        return Window(found, aborted, found[-1].header.last_offset + 1) if found else None, readable

    def _asked(self, cluster: Cluster, led: Led, position: int) -> _Told:
        most = self._servers.fetch_bytes
        kind = FetchRequest.Topic
        asked = kind.Partition(
            partition=self._partition.index,
            current_leader_epoch=led.epoch,
            fetch_offset=position,
            partition_max_bytes=most,
        )
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=most,
            isolation_level=int(self._servers.committed_only),
            topics=[kind(topic=self._partition.topic, topic_id=led.topic_id, partitions=[asked])],
        )
        # A server without ids of topics tells zeroes.
        newest = None if any(led.topic_id) else _BY_NAME
        answer = cluster.connection(led.node).ask(request, FetchResponse, newest)
        refuse(answer.error_code)
        [topic] = answer.responses
        [told] = topic.partitions
        return told
