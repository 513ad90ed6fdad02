"""
The interfaces between the parts of the gateway: handlers on one side, brokers on the other.

A broker may be the memory of one process, a log on one disk, or many gateways over shared storage. Handlers, groups and
transactions see no difference. `append` and `read` are plain calls: if nothing must be waited for, no Deferred is made.
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
    leader_epoch: int = Attribute("the epoch in which this gateway leads it; written into each batch")
    log_start: int = Attribute("the log start offset: the first one that is not deleted")
    high_watermark: int = Attribute("the offset before which everything is committed, and readable")
    last_stable: int = Attribute(
        "the last stable offset: no transaction that began before it is open; at most the high watermark"
    )
    log_end: int = Attribute("the log end offset, which the next record gets")
    lost: KafkaError | None = Attribute(
        "why this gateway no longer leads it, which its methods raise; `None` while it leads"
    )

    def validate(batch: Batch) -> Steps[None]:
        """
        Check each record of a client's batch, if the topic asks for that; a KafkaError if it is refused. The batch is
        then appended with an Origin that says so.
        """

    def append(batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        """
        Check the batch and assign its offsets, now; a KafkaError if it is refused. The client id is passed on to
        storage that records it.
        """

    def read(
        offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        """
        Whole batches from the one that has the offset, as many as fit; with `at_least_one` the first one even if it
        does not fit. A Deferred only if disk or network is needed; a KafkaError if the offset is out of range.

        `due` is the time, by the reactor's clock, at which the caller must answer. Storage that may hang then returns
        nothing, reads on, and wakes the watchers. A local disk is waited for.
        """

    def find_time(timestamp: int) -> TimestampAndOffset | Deferred[TimestampAndOffset | None] | None:
        """
        The first record with this timestamp or a later one, up to the high watermark.
        """

    def find_max_time() -> TimestampAndOffset | Deferred[TimestampAndOffset | None] | None:
        """
        The first record with the largest timestamp.
        """

    def epoch_end(leader_epoch: int) -> EpochEnd | None:
        """
        The end of this leader epoch, or of the last one before it that has records; `None` if the log has neither.
        """

    def delete_before(offset: int) -> Deferred[int]:
        """
        Delete everything before the offset. Fires with the log start offset once it is durable. Nothing changes if
        the log already starts there or later. OFFSET_OUT_OF_RANGE for an offset below 0 or above the high watermark.
        """

    def expire() -> Deferred[None]:
        """
        Delete what exceeds the retention of the topic.
        """

    def watch(listener: Callable[[], None]) -> Cancel:
        """
        Call when the high watermark, the last stable offset or the leadership changes, or the topic is deleted.
        """

    def producers() -> ProducerTable:
        """
        The state of idempotent producers.
        """


class IStateLog(Interface):
    """
    The log of a coordinator: a snapshot of its state, and the records of a partition of an internal topic after it.
    """

    epoch: int = Attribute("the leader epoch in which this gateway is the coordinator")
    index: int = Attribute("which partition of the internal topic it is")

    def replay() -> "Deferred[IReplay]":
        """
        The state as it was written.
        """

    def append(records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        """
        Write records as one batch, in the transaction of a producer or in none; MESSAGE_TOO_LARGE if one of them
        exceeds what the topic takes.
        """

    def snapshot(state: Iterable[KeyValue], undecided_from: int | None = None) -> Deferred[None]:
        """
        Store the present state: a replay begins with it and skips the records before it. The state has no records
        of transactions that have written from `undecided_from` on, even of ended ones.
        """

    def on_lost(listener: Callable[[], None]) -> Cancel:
        """
        Call when this gateway ceases to be the coordinator.
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
    The other gateways, asked in Kafka's protocol: markers, verification, forwarded requests of administrators.
    """

    def ask(node: Node, request: Message, version: int) -> Deferred[Message]:
        """
        The answer of another gateway.
        """


class IBroker(Interface):
    """
    The storage of topics.
    """

    description: str = Attribute("the data that this gateway serves, in a few words for its operator")
    folder: str | None = Attribute("where its files are, if it has a folder of its own")
    log_dir: str = Attribute("where its partitions are, as administrators see it: a folder, or words for another place")
    node_id: int = Attribute("which of the nodes this gateway is")
    peers: IPeers = Attribute("the other gateways")

    def start() -> Deferred[None]:
        """
        Open what the broker needs; nothing is opened before.
        """

    def stop() -> Deferred[None]:
        """
        Close everything in good order.
        """

    def undo_start() -> Deferred[None]:
        """
        Stop because the gateway could not start: remove what the start has made, if nothing is stored in it.
        """

    def leave() -> None:
        """
        This gateway is about to stop: from now on it must not take over the partitions of others.
        """

    def announce(addresses: Mapping[str, Address]) -> None:
        """
        Announce the addresses at which clients reach this gateway, by listener, for other gateways to advertise. Called
        once, after the start.
        """

    def view() -> ClusterView:
        """
        The cluster as it is now.
        """

    def watch(listener: Callable[[], None]) -> Cancel:
        """
        Call when there is a new view.
        """

    def partition(topic_id: Uuid, index: int) -> IPartition:
        """
        A partition led here. A KafkaError if there is none: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, or
        NOT_LEADER_OR_FOLLOWER if another node leads it.
        """

    def coordinator(resource: Resource, key: str) -> IStateLog | Node:
        """
        The state log of a group or transactional id if it is coordinated here, else the node that coordinates it.
        """

    def coordinators(resource: Resource) -> Sequence[IStateLog]:
        """
        All state logs of this type that are led here; none if nobody has used one yet. A KafkaError as long as one of
        them is not available.
        """

    def check_topic(new: NewTopic) -> None:
        """
        A KafkaError if a topic cannot be like this here, as a new, grown or altered topic. Nothing is changed.
        """

    def create_topic(new: NewTopic) -> Deferred[Topic]:
        """
        Create a topic; TOPIC_ALREADY_EXISTS if the name is taken.
        """

    def delete_topic(topic_id: Uuid) -> Deferred[None]:
        """
        Delete a topic and its records.
        """

    def add_partitions(topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        """
        Raise the number of partitions of a topic to this.
        """

    def change_config(resource: ConfigResource, change: Change) -> Deferred[None]:
        """
        Set the overrides of a resource to what `change` returns for the present ones. Fires when they are durable and
        in the view. Changes of one resource are made one after the other: each is given the result of the one before
        it. A change may be called more than once, and may refuse with a KafkaError.
        """

    def measure(partitions: Iterable[PartitionId]) -> Deferred[DiskUsage]:
        """
        The bytes that these partitions take, and the free space. Partitions that are not here are left out.
        """

    def new_producer_id() -> Deferred[int]:
        """
        An id that no producer of the cluster has had.
        """


class IAuthorizer(Interface):
    """
    Decides who may do what.
    """

    def allowed(principal: str, operation: Operation, resource: Resource, name: str, host: str) -> bool:
        """
        Whether the principal, connected from this host, may do this to the resource of this name.
        """


class IApiHandler(Interface):
    """
    Serves one API in a range of versions. `kgateway.api.api` makes it.
    """

    name: str = Attribute("the function, as module.name")
    request: type[Message] = Attribute("the message it takes")
    response: type[Message] = Attribute("the message it answers with")
    versions: range = Attribute("the versions it serves")
    advertised: range = Attribute("the versions that ApiVersions advertises")
    needs: tuple[Need | Free, ...] = Attribute("what the authorizer is asked")
    overlaps: bool = Attribute("whether the next request of the connection may start before this one is answered")
    polls: bool = Attribute("whether it may wait for something to happen, and answers at once if it is cancelled")
    starts: tuple[type, ...] = Attribute("services that work from the start on")
    replaces: bool = Attribute("whether it may take versions from another handler")
    priority: int = Attribute("of two handlers of a version, the one with the higher priority serves")

    def handle(request: Any, context: Any) -> Response:
        """
        The response, or an awaitable of it; `None` if the protocol has no answer.
        """


class IApiFilter(Interface):
    """
    Wraps the handlers of an API: it sees and changes requests and responses. `kgateway.api.around` makes it.
    """

    name: str = Attribute("the function, as module.name")
    requests: tuple[type[Message], ...] = Attribute("the requests that it wraps")
    topics: tuple[str, ...] = Attribute("patterns, one of which a topic of the request must match; none: any request")
    listeners: tuple[str, ...] = Attribute("names of listeners; none: any")
    principals: tuple[str, ...] = Attribute("names of principals; none: any")
    priority: int = Attribute("a filter of higher priority is further outside")

    def filter(request: Any, context: Any, proceed: Proceed) -> Awaitable[Message | None]:
        """
        The response. `proceed` returns the response of the next filter or of the handler.
        """
