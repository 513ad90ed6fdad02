"""
What handlers of many partitions share: finding topics, checking leader epochs, turning an error of one partition into
its answer, and naming the leaders.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.partition import Isolation
from kgateway.cluster.view import Address, Node, Topic
from kgateway.context import Context
from kgateway.interfaces import IPartition
from kgateway.log_messages import CANNOT_SERVE
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_log = Logger(__name__)


def topic_named(context: Context, name: str) -> Topic:
    """
    The topic of this name. Callers check the permission first, so a client without it does not learn whether the topic
    exists.
    """
    topic = context.broker.view().topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    return topic


def topic_of_id(context: Context, topic_id: Uuid) -> Topic:
    topic = context.broker.view().topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic_id}")
    return topic


def isolation(level: int) -> Isolation:
    if level not in (0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no isolation level {level}, only 0 and 1")
    return Isolation.READ_COMMITTED if level else Isolation.READ_UNCOMMITTED


def check_leader_epoch(partition: IPartition, epoch: int) -> None:
    """
    Refuse a client whose metadata is older or newer than the leader epoch (KIP-320). Below 0 it names no epoch.
    """
    if epoch < 0 or epoch == partition.leader_epoch:
        return
    code = ErrorCode.FENCED_LEADER_EPOCH if epoch < partition.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    raise KafkaError(code, f"the client knows leader epoch {epoch}, but the partition is in {partition.leader_epoch}")


def as_kafka_error(error: BaseException | None, subject: str) -> KafkaError:
    """
    The error as a KafkaError. A bug of ours is logged, and fails one partition, not all.
    """
    if isinstance(error, KafkaError):
        return error
    _log.failure(CANNOT_SERVE, Failure(error), subject=subject)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}; the gateway's log has more")


def endpoints(context: Context, node_ids: Iterable[int]) -> Iterator[tuple[Node, Address]]:
    """
    The addresses for this client of those nodes that are in the cluster.
    """
    view = context.broker.view()
    for node_id in node_ids:
        node = view.node(node_id)
        if node:
            yield node, context.address(node)


def name_leaders(response: Any, misdirected: Iterable[tuple[Topic | None, int, Any]], context: Context) -> None:
    """
    Add the leaders of partitions to answers for clients that asked the wrong node, and the leaders' addresses to the
    response (KIP-951). Responses of several APIs have these fields.
    """
    leaders: dict[int, None] = {}  # in the order in which they are named
    for topic, index, answer in misdirected:
        if topic and 0 <= index < len(topic.partitions):
            state = topic.partitions[index]
            answer.current_leader = answer.CurrentLeader(leader_id=state.leader_id, leader_epoch=state.leader_epoch)
            leaders[state.leader_id] = None
    response.node_endpoints = [
        response.NodeEndpoint(node_id=node.id, host=address.host, port=address.port, rack=node.rack)
        for node, address in endpoints(context, leaders)
    ]
