"""
Makes partitions of what there is of them in the cluster, and tells them what the filer says of their files.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweedmq.beside import Beside
from kgateway.broker.seaweedmq.decoded_files import DecodedFiles
from kgateway.broker.seaweedmq.folders import folders_of
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.lately import Lately
from kgateway.broker.seaweedmq.link import Link
from kgateway.broker.seaweedmq.opened import Opened, fresh, opened
from kgateway.broker.seaweedmq.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.partition_ledger import PartitionLedger
from kgateway.broker.seaweedmq.site import Site
from kgateway.broker.seaweedmq.topics import Stored, Topics
from kgateway.cluster.view import Topic
from kgateway.wire.uuids import Uuid

_DECODED_BYTES = 32 << 20  # of files that were read, for all partitions; half of it is for what is read ahead for four

# Bytes for all partitions, and the least for one.
_LATELY = 40 << 20, 1 << 16  # of what was published lately, where it must be in memory
_HELD = 256 << 20, 4 << 20  # that are in no file
_WINDOW = 32 << 20, 1 << 20  # that are on their way to brokers


class Ledgers(Protocol):
    """
    Whoever keeps them.
    """

    def of(self, topic_id: Uuid, link: Link) -> PartitionLedger:
        """
        The ledger of a partition that is being opened.
        """


class Making:
    """
    For one gateway.
    """

    def __init__(
        self, site: Site, topics: Topics, demand_ownership: Callable[[], None], ledgers: Ledgers | None = None
    ) -> None:
        self._site = site
        self._topics = topics
        self._demand_ownership = demand_ownership
        self._ledgers = ledgers  # where they are kept
        self._decoded = DecodedFiles(_DECODED_BYTES)
        self._by_folder: dict[str, SeaweedMQPartition] = {}

    def fresh(self, topic: Topic, stored: Stored, index: int) -> SeaweedMQPartition:
        """
        A partition that was made just now.
        """
        link = self._link(stored, index)
        epoch = topic.partitions[index].leader_epoch
        return self._made(topic, index, link, fresh(link, epoch, self._site.producer_expiry_ms))

    async def existing(self, topic: Topic, stored: Stored, index: int) -> SeaweedMQPartition:
        """
        A partition that may have records.
        """
        link, epoch = self._link(stored, index), topic.partitions[index].leader_epoch
        expiry_ms, now_ms = self._site.producer_expiry_ms, self._site.now_ms()
        found = await opened(link, epoch, expiry_ms, now_ms)
        return self._made(topic, index, link, found)

    def history(self, stored: Stored, index: int) -> History:
        """
        What a partition has in files.
        """
        folders = folders_of(stored.kept, stored.name, index, self._topics.namespace)
        return History(self._site.seaweed, folders, stored.kept.form, self._decoded, self._site.reactor)

    def regrown(self, partition: SeaweedMQPartition, stored: Stored) -> None:
        """
        SeaweedMQ has made the partition anew.
        """
        self._forget(partition)
        folders = folders_of(stored.kept, stored.name, partition.index, self._topics.namespace)
        partition.move(folders)
        self._by_folder[folders[-1].path] = partition

    def _forget(self, partition: SeaweedMQPartition) -> None:
        """
        The partition is not ours any more.
        """
        for folder in [folder for folder, known in self._by_folder.items() if known is partition]:
            del self._by_folder[folder]

    def forget(self, topic: Topic) -> None:
        """
        The topic is there no more.
        """
        self._by_folder = {folder: each for folder, each in self._by_folder.items() if each.topic.id != topic.id}

    def grown(self, folder: str, entry: Entry) -> None:
        """
        A file in a folder has grown.
        """
        partition = self._by_folder.get(folder)
        if partition:
            partition.grown(entry)

    def _link(self, stored: Stored, index: int) -> Link:
        link = Link(
            stored.name,
            index,
            self.history(stored, index),
            stored.kept.form,
            self._site.seaweed,
            self._topics.messaging,
            self._site.reactor,
            self._site.client,
            self._demand_ownership,
            Beside(self._site.seaweed, f"{self._topics.folder(stored.name)}/.kgateway/{index}", self._demand_ownership),
            stored.kept.found,
        )
        return link._replace(ledger=self._ledgers.of(stored.kept.id, link)) if self._ledgers else link

    def _made(self, topic: Topic, index: int, link: Link, found: Opened) -> SeaweedMQPartition:
        in_memory, held, on_its_way = (partial(self._share, *limits) for limits in (_LATELY, _HELD, _WINDOW))
        lately = Lately(self._site.spool, in_memory, found.end.offset)
        partition = SeaweedMQPartition(topic, index, self._site.now_ms, found, link, lately, held, on_its_way)
        self._by_folder[link.history.folders[-1].path] = partition
        if link.ledger:
            link.ledger.open(found.start, found.end)
        return partition

    def _share(self, total: int, least: int) -> int:
        """
        What one partition may have of so many bytes.
        """
        return max(total // max(len(self._by_folder), 1), least)
