"""
The interfaces that decide how the gateway is cut: handlers on one side, brokers on the other.

A broker may be the memory of one process, a log on one disk, or many gateways over shared storage; handlers, groups
and transactions see no difference. `append` and `read` are plain calls: where nothing must be waited for, no Deferred
is made.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface

from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.log_dir import Measured, Places
from kgateway.cluster.partition import Appended, EpochEnd, Found, Isolation, Origin, Read
from kgateway.cluster.undecided import Undecided
from kgateway.cluster.view import Address, ClusterView, NewTopic, Node, Topic
from kgateway.records.batch import Batch
from kgateway.records.steps import Steps
from kgateway.security.permissions import Free, Need, Operation, Resource
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
    One partition that this gateway owns.
    """

    topic: Topic = Attribute("the topic as it is now, with its config")
    index: int = Attribute("which of the topic's partitions this is")
    leader_epoch: int = Attribute("since when this gateway owns it; written into each batch")
    log_start: int = Attribute("the first offset that is still there")
    high_watermark: int = Attribute("the offset before which everything is safe, and readable")
    last_stable: int = Attribute("the offset before which no transaction is open; at most the high watermark")
    log_end: int = Attribute("the offset that the next record gets")
    lost: KafkaError | None = Attribute("why it is this gateway's no more, as its methods say too; `None` while it is")

    def judge(batch: Batch) -> Steps[None]:
        """
        Look at each record of a client's batch where the topic asks for that; a KafkaError where it is refused. What
        was judged so is appended as such.
        """

    def append(batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        """
        Check the batch and give it its offsets, now; a KafkaError where it is refused. The client's id is for others
        who are told on whose behalf it is kept.
        """

    def read(
        offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf
    ) -> Read | Deferred[Read]:
        """
        Whole batches from the one on that has the offset, as many as fit; with `at_least_one` the first also where it
        does not fit. A Deferred only when disk or network is needed; a KafkaError where the offset is out of range.

        Whoever asks has to answer when it is `due`, by the reactor's clock. What may hang brings nothing by then, goes
        on, and wakes those who watch; a disk is waited for.
        """

    def find_time(timestamp: int) -> Found | Deferred[Found | None] | None:
        """
        The first record with this timestamp or a later one, as far as the high watermark.
        """

    def find_max_time() -> Found | Deferred[Found | None] | None:
        """
        The first of the records that have the largest timestamp.
        """

    def epoch_end(leader_epoch: int) -> EpochEnd | None:
        """
        Where this epoch, or the one before it that left records, ends; `None` where the log knows of none.
        """

    def delete_before(offset: int) -> Deferred[int]:
        """
        Let all before the offset go. Fires with the first offset that is still there, once that will be so for ever;
        nothing changes where it is the one already, or a later one. OFFSET_OUT_OF_RANGE for an offset below 0 or above
        the high watermark.
        """

    def expire() -> Deferred[None]:
        """
        Let go of what the topic's retention keeps no longer.
        """

    def watch(listener: Callable[[], None]) -> Cancel:
        """
        Call when the watermark, the stable offset or the leadership moves, or the topic goes.
        """

    def producers() -> ProducerTable:
        """
        What is remembered of idempotent producers.
        """


class IStateLog(Interface):
    """
    The state of a coordinator: a snapshot, and the records of an internal partition after it.
    """

    epoch: int = Attribute("the leader epoch under which this gateway is the coordinator")
    index: int = Attribute("which partition of the internal topic it is")

    def replay() -> "Deferred[IReplay]":
        """
        The state as it was written.
        """

    def append(records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        """
        Write records as one batch, in the transaction of a producer or in none; MESSAGE_TOO_LARGE where one of them is
        larger than the topic takes.
        """

    def snapshot(state: Iterable[KeyValue], undecided_from: int | None = None) -> Deferred[None]:
        """
        The state as it is now: a replay begins with it and leaves out what was before. The state has nothing yet of
        transactions that have written from this offset on, though they may have ended.
        """

    def on_lost(listener: Callable[[], None]) -> Cancel:
        """
        Call when this gateway ceases to be the coordinator.
        """


class IReplay(Interface):
    """
    The state of a coordinator as it was written.
    """

    undecided: Undecided[bytes, bytes] = Attribute("behind all pieces, what is in transactions that have not ended")
    began: dict[int, int] = Attribute("behind all pieces, where each of those begins, by producer")

    def __next__() -> list[KeyValue]:
        """
        The next piece.
        """

    def __iter__() -> Iterator[list[KeyValue]]:
        """
        As records, oldest first, in pieces that can be worked off one by one, once. What was written in a transaction
        comes when that is committed, unless something later has taken its place.
        """


PEER = "kgateway-peer"  # the client id of a gateway that asks another one


class IPeers(Interface):
    """
    The other gateways, asked in Kafka's own words: markers, verification, forwarded requests of administrators.
    """

    def ask(node: Node, request: Message, version: int) -> Deferred[Message]:
        """
        The answer of another gateway.
        """


class IBroker(Interface):
    """
    Where topics live.
    """

    description: str = Attribute("with which data this gateway serves, in a few words for its operator")
    folder: str | None = Attribute("where its files are, if it has a place of its own")
    log_dir: str = Attribute(
        "where its partitions are, as administrators are told: a folder, or words for another place"
    )
    node_id: int = Attribute("which of the nodes this gateway is")
    peers: IPeers = Attribute("the other gateways")

    def start() -> Deferred[None]:
        """
        Open what the broker needs; nothing is opened before.
        """

    def stop() -> Deferred[None]:
        """
        Close it in good order.
        """

    def leave() -> None:
        """
        This gateway is going to stop: it is not to take on what others let go of.
        """

    def announce(addresses: Mapping[str, Address]) -> None:
        """
        Clients reach this gateway there, by listener: other gateways may tell them. Called once, after the start.
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
        A partition owned here. A KafkaError where there is none: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, or
        NOT_LEADER_OR_FOLLOWER where another node owns it.
        """

    def coordinator(resource: Resource, key: str) -> IStateLog | Node:
        """
        The state log of a group or transactional id where it is owned here, else the node that owns it.
        """

    def coordinators(resource: Resource) -> Sequence[IStateLog]:
        """
        All state logs of this kind that are owned here; none where nobody has asked for one yet. A KafkaError as long
        as one of them cannot be had.
        """

    def check_topic(new: NewTopic) -> None:
        """
        A KafkaError where a topic cannot be like this here, be it new, grown or changed. Nothing is done.
        """

    def create_topic(new: NewTopic) -> Deferred[Topic]:
        """
        Make a topic; TOPIC_ALREADY_EXISTS where the name is taken.
        """

    def delete_topic(topic_id: Uuid) -> Deferred[None]:
        """
        Remove a topic and what is in it.
        """

    def add_partitions(topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        """
        Let the topic have this many partitions, more than it has.
        """

    def change_config(resource: ConfigResource, change: Change) -> Deferred[None]:
        """
        Let the overrides of a resource be what `change` makes of them; it fires when they last, and are in the view.
        Changes of one resource come one after the other: each is given what the one before has made. A change may be
        called more than once, and may refuse with a KafkaError.
        """

    def measure(places: Places) -> Deferred[Measured]:
        """
        How much room these partitions take, and how much there is; those that are not here are left out.
        """

    def new_producer_id() -> Deferred[int]:
        """
        An id that no producer of the cluster has had.
        """


class IAuthorizer(Interface):
    """
    Says who may do what.
    """

    def allowed(principal: str, operation: Operation, resource: Resource, name: str, host: str) -> bool:
        """
        Whether the principal, connected from this host, may do this to the resource of this name.
        """


class IApiHandler(Interface):
    """
    Serves one API in a range of versions. Made by `kgateway.api.api`.
    """

    name: str = Attribute("the function, as module.name")
    request: type[Message] = Attribute("the message it takes")
    response: type[Message] = Attribute("the message it answers with")
    versions: range = Attribute("the versions it serves")
    advertised: range = Attribute("the versions that ApiVersions tells of")
    needs: tuple[Need | Free, ...] = Attribute("what the authorizer is asked")
    overlaps: bool = Attribute("whether the next request of the connection may start before this one is answered")
    polls: bool = Attribute("whether it may wait for something to happen, and answers at once when it is cancelled")
    starts: tuple[type, ...] = Attribute("services that work from the start on, whether anybody asks or not")
    replaces: bool = Attribute("whether it may take versions from another handler")
    priority: int = Attribute("of two handlers that both may, the higher one serves")

    def handle(request: Any, context: Any) -> Response:
        """
        The response, or what it can be awaited from; `None` where the protocol has no answer.
        """


class IApiFilter(Interface):
    """
    Stands around the handler of an API: sees and changes requests and responses. Made by `kgateway.api.around`.
    """

    name: str = Attribute("the function, as module.name")
    requests: tuple[type[Message], ...] = Attribute("the requests it stands around")
    topics: tuple[str, ...] = Attribute("patterns, one of which a topic of the request must fit; none: any request")
    listeners: tuple[str, ...] = Attribute("names of listeners; none: any")
    principals: tuple[str, ...] = Attribute("names of principals; none: any")
    priority: int = Attribute("the higher one stands further outside")

    def filter(request: Any, context: Any, proceed: Proceed) -> Awaitable[Message | None]:
        """
        The response; `proceed` gives that of what stands inside.
        """
