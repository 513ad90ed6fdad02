"""
Writes the end of a transaction into partitions of this gateway.

Both the coordinator, where it leads a partition itself, and the handler of WriteTxnMarkers write through here. So
whoever listens hears of every transaction that ends in a partition here, whichever gateway coordinates it.
"""

from collections.abc import Callable
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.cluster.partition import Origin
from kgateway.context import GatewayParts
from kgateway.interfaces import Cancel, IPartition
from kgateway.records.control import Marker, marker_batch
from kgateway.transactions.state import EPOCH_EACH, Identity, Place
from kgateway.wire.errors import ErrorCode, KafkaError


class Ending(NamedTuple):
    """
    What is said in every partition of a transaction.
    """

    producer: Identity
    commits: bool
    coordinator_epoch: int
    transaction_version: int


# Told of a partition in which a producer's transaction has ended for good, and whether it commits.
Listener = Callable[[Place, int, bool], None]


class Markers:
    """
    Writes them, and tells of those that are safe.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._broker = gateway.broker
        self._now_ms = gateway.now_ms
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Cancel:
        """
        Call for each marker that is safe.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def write(self, place: Place, ending: Ending) -> Deferred[None] | None:
        """
        Write it. `None` when it is safe by then, else what fires when it is; a KafkaError where it cannot be written.
        """
        topic = self._broker.view().topics.get(place.topic)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {place.topic}")
        partition = self._broker.partition(topic.id, place.partition)
        _check_not_late(partition, place, ending)
        marker = marker_batch(*ending.producer, Marker(ending.commits, ending.coordinator_epoch), self._now_ms())
        appended = partition.append(marker, Origin.COORDINATOR)
        appended.leave(appended.stored)
        if appended.safe is None:
            self._tell(place, ending)
            return None
        return appended.safe.addCallback(lambda _: self._tell(place, ending))

    def _tell(self, place: Place, ending: Ending) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(place, ending.producer.producer_id, ending.commits)
            except Exception:  # the marker is written all the same
                self._log.failure("not told that a transaction has ended in {place}", place=place)


def _check_not_late(partition: IPartition, place: Place, ending: Ending) -> None:
    """
    Refuse what has come once already, and would end the next transaction, which has its epoch (KIP-1228).
    """
    if ending.transaction_version >= EPOCH_EACH and partition.producers().has_open(*ending.producer):
        reason = f"{place.topic}-{place.partition} has a later transaction of {ending.producer} open"
        raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
