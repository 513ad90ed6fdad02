"""
The interfaces between the parts of the gateway: handlers on one side, brokers on the other.

A broker may keep its data in the memory of one process, in a log on one disk, or in storage that several gateways
share. Handlers, groups and transactions see no difference. `append` and `read` are plain calls: they make no Deferred
if there is nothing to wait for.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface

from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.partition import (
    Appended,
    DiskUsage,
    EpochEnd,
    Isolation,
    Origin,
    Read,
    TimestampAndOffset,
)
from kgateway.cluster.pending_values import PendingValues
from kgateway.cluster.view import Address, ClusterView, NewTopic, Node, Topic
from kgateway.records.batch import Batch
from kgateway.records.slices import Steps
from kgateway.security.permissions import Free, Need, Operation, Resource
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import KafkaError
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

Cancel = Callable[[], None]
KeyValue = tuple[bytes, bytes | None]  # a record of a state log; without a value it is a tombstone
ProducerEpoch = tuple[int, int]  # the id of a producer, and its epoch
Response = Message | Awaitable[Message | None] | None
Proceed = Callable[[Message], Awaitable[Message | None]]


class IPartition(Interface):
    """
    One partition that this gateway leads.
    """

    topic: Topic = Attribute("the topic as it is now, with its config")
    index: int = Attribute("which of the topic's partitions this is")
    leader_epoch: int = Attribute("the epoch in which this gateway leads the partition; it is written into each batch")
    log_start: int = Attribute("the log start offset: the first one that is not deleted")
    high_watermark: int = Attribute("the offset before which everything is committed and readable")
    last_stable: int = Attribute(
        "the last stable offset, before which no open transaction began; at most the high watermark"
    )
    log_end: int = Attribute("the log end offset, which the next record will get")
    lost: KafkaError | None = Attribute(
        "why this gateway no longer leads the partition, as the error that the methods raise; `None` while it leads"
    )

    def validate(batch: Batch) -> Steps[None]:
        """
        Check each record of a client's batch, if the topic requires this. Raises KafkaError if the batch is refused.
        The batch is then appended with an Origin that says that it was checked.
        """

    def append(batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        """
        Check the batch and assign its offsets at once. Raises KafkaError if the batch is refused. The client id is for
        storage that records it.
        """

    def read(
        offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        """
        Return as many whole batches as fit, beginning with the one that contains the offset; with `at_least_one`, the
        first batch even if it does not fit. Returns a Deferred only if the disk or the network is needed. Raises
        KafkaError if the offset is out of range.

        `due` is the time, by the reactor's clock, at which the caller must answer. Storage that may hang returns
        nothing at that time, continues to read, and wakes the watchers later. Reads from a local disk always finish
        first.
        """

    def find_time(timestamp: int) -> TimestampAndOffset | Deferred[TimestampAndOffset | None] | None:
        """
        Return the first record with this timestamp or a later one, up to the high watermark.
        """

    def find_max_time() -> TimestampAndOffset | Deferred[TimestampAndOffset | None] | None:
        """
        Return the first record with the largest timestamp.
        """

    def epoch_end(leader_epoch: int) -> EpochEnd | None:
        """
        Return the end of this leader epoch, or of the last earlier one that has records; `None` if the log has neither.
        """

    def delete_before(offset: int) -> Deferred[int]:
        """
        Delete everything before the offset. The Deferred fires with the log start offset once it is durable. Nothing
        changes if the log already starts there or later. Fails with OFFSET_OUT_OF_RANGE if the offset is below 0 or
        above the high watermark.
        """

    def expire() -> Deferred[None]:
        """
        Delete the records that exceed the retention limits of the topic.
        """

    def watch(listener: Callable[[], None]) -> Cancel:
        """
        Call the listener when the high watermark, the last stable offset or the leadership changes, or when the topic
        is deleted.
        """

    def producers() -> ProducerTable:
        """
        The state of idempotent producers.
        """


class IStateLog(Interface):
    """
    The log of a coordinator: a snapshot of its state, followed by the later records of a partition of an internal
    topic.
    """

    epoch: int = Attribute("the leader epoch in which this gateway is the coordinator")
    index: int = Attribute("which partition of the internal topic it is")

    def replay() -> "Deferred[IReplay]":
        """
        Return the state as it was written.
        """

    def append(records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        """
        Write records as one batch, in the transaction of a producer or in none. Fails with MESSAGE_TOO_LARGE if one of
        them is larger than the topic allows.
        """

    def snapshot(state: Iterable[KeyValue], undecided_from: int | None = None) -> Deferred[None]:
        """
        Store the present state: a replay begins with it and skips the records before it. The state excludes the records
        of transactions that have written at or after `undecided_from`, even if they have ended.
        """

    def on_lost(listener: Callable[[], None]) -> Cancel:
        """
        Call the listener when this gateway ceases to be the coordinator.
        """


class IReplay(Interface):
    """
    The state of a coordinator as it was written: an iterator over pieces of records, oldest first, that can be read
    once. The records of a transaction come when it is committed, unless later records have replaced them.
    """

    undecided: PendingValues[bytes, bytes] = Attribute(
        "after the last piece, the records of transactions that have not ended"
    )
    began: dict[int, int] = Attribute("after the last piece, the first offset of each of those, by producer")

    def __next__() -> list[KeyValue]:
        """
        The next piece.
        """

    def __iter__() -> Iterator[list[KeyValue]]:
        """
        The iterator itself.
        """


PEER = "kgateway-peer"  # the client id of a gateway that asks another gateway


class IPeers(Interface):
    """
    The other gateways. They are asked, in Kafka's protocol, for markers and verification, and administrators' requests
    are forwarded to them.
    """

    def ask(node: Node, request: Message, version: int) -> Deferred[Message]:
        """
        Return the response of another gateway.
        """


class IBroker(Interface):
    """
    The storage of topics.
    """

    description: str = Attribute("the data that this gateway serves, in a few words for the operator")
    folder: str | None = Attribute("where its files are, if it has a folder of its own")
    log_dir: str = Attribute("where its partitions are, as shown to administrators: a folder, or a description")
    node_id: int = Attribute("the node id of this gateway")
    peers: IPeers = Attribute("the other gateways")

    def start() -> Deferred[None]:
        """
        Open what the broker needs; nothing is opened before.
        """

    def stop() -> Deferred[None]:
        """
        Close everything in an orderly way.
        """

    def undo_start() -> Deferred[None]:
        """
        Stop because the gateway could not start, and remove what the start has created, unless something is stored in
        it.
        """

    def leave() -> None:
        """
        This gateway is about to stop: from now on it must not take over the partitions of others.
        """

    def announce(addresses: Mapping[str, Address]) -> None:
        """
        Announce the addresses at which clients reach this gateway, by listener, for other gateways to advertise. This
        is called once, after the start.
        """

    def view() -> ClusterView:
        """
        Return the cluster as it is now.
        """

    def watch(listener: Callable[[], None]) -> Cancel:
        """
        Call the listener when there is a new view.
        """

    def partition(topic_id: Uuid, index: int) -> IPartition:
        """
        Return a partition that this gateway leads. Otherwise raises KafkaError: UNKNOWN_TOPIC_ID,
        UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER if another node leads it.
        """

    def coordinator(resource: Resource, key: str) -> IStateLog | Node:
        """
        Return the state log of a group or transactional id if this gateway coordinates it, and otherwise the node that
        does.
        """

    def coordinators(resource: Resource) -> Sequence[IStateLog]:
        """
        Return all state logs of this type that this gateway leads; none if no client has used one yet. Raises
        KafkaError while one of them is not available.
        """

    def check_topic(new: NewTopic) -> None:
        """
        Raise KafkaError if the broker does not allow such a topic, whether it is new, grown or altered. Changes
        nothing.
        """

    def create_topic(new: NewTopic) -> Deferred[Topic]:
        """
        Create a topic. Fails with TOPIC_ALREADY_EXISTS if the name is taken.
        """

    def delete_topic(topic_id: Uuid) -> Deferred[None]:
        """
        Delete a topic and its records.
        """

    def add_partitions(topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        """
        Increase the number of partitions of a topic to this number.
        """

    def change_config(resource: ConfigResource, change: Change) -> Deferred[None]:
        """
        Set the overrides of a resource to what `change` returns for the current ones. The Deferred fires when they are
        durable and in the view. Changes to the same resource are made one after another, and each gets the result of
        the previous one. `change` may be called more than once, and may refuse by raising KafkaError.
        """

    def measure(partitions: Iterable[PartitionId]) -> Deferred[DiskUsage]:
        """
        Return the number of bytes that these partitions occupy, and the free space. Partitions that are not on
        this gateway are left out.
        """

    def new_producer_id() -> Deferred[int]:
        """
        Return an id that no producer of the cluster has had.
        """


class IAuthorizer(Interface):
    """
    Decides what each client may do.
    """

    def allowed(principal: str, operation: Operation, resource: Resource, name: str, host: str) -> bool:
        """
        Return whether the principal, connected from this host, may do this to the resource with this name.
        """


class IApiHandler(Interface):
    """
    Serves one API in a range of versions. `kgateway.api.api` makes it.
    """

    name: str = Attribute("the function, as module.name")
    request: type[Message] = Attribute("the type of the request")
    response: type[Message] = Attribute("the type of the response")
    versions: range = Attribute("the versions that it serves")
    advertised: range = Attribute("the versions that ApiVersions advertises")
    needs: tuple[Need | Free, ...] = Attribute("the permissions that it demands")
    overlaps: bool = Attribute("whether the next request of the connection may start before this one is answered")
    polls: bool = Attribute(
        "whether it may wait for something to happen; if so, it answers at once when it is cancelled"
    )
    starts: tuple[type, ...] = Attribute("services that the gateway creates when it starts")
    replaces: bool = Attribute("whether it may take over versions from another handler")
    priority: int = Attribute("of two handlers for a version, the one with the higher priority serves it")

    def handle(request: Any, context: Any) -> Response:
        """
        Return the response, or an awaitable of it; `None` if the protocol has no response to this request.
        """


class IApiFilter(Interface):
    """
    Wraps the handlers of an API: it sees and changes requests and responses. `kgateway.api.around` makes it.
    """

    name: str = Attribute("the function, as module.name")
    requests: tuple[type[Message], ...] = Attribute("the requests that it wraps")
    topics: tuple[str, ...] = Attribute(
        "patterns; some topic in the request must match one of them. If empty, any request"
    )
    listeners: tuple[str, ...] = Attribute("patterns for names of listeners. If empty, any listener")
    principals: tuple[str, ...] = Attribute("patterns for names of principals. If empty, any principal")
    priority: int = Attribute("a filter with a higher priority is further out")

    def filter(request: Any, context: Any, proceed: Proceed) -> Awaitable[Message | None]:
        """
        Return the response. `proceed` returns the response of the next filter or of the handler.
        """
