"""
What handlers share that serve many partitions in one request: how a client's words find a topic, how its epoch is
checked, what becomes of an error that concerns one partition alone, and where clients find the leader.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.partition import Isolation
from kgateway.cluster.view import Address, Node, Topic
from kgateway.context import Context
from kgateway.interfaces import IPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_log = Logger()


def topic_named(context: Context, name: str) -> Topic:
    """
    The topic of this name. Who may not use it is refused before, and so not told whether it is there.
    """
    topic = context.broker.view().topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    return topic


def topic_of_id(context: Context, topic_id: Uuid) -> Topic:
    """
    The topic of this id.
    """
    topic = context.broker.view().topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic_id}")
    return topic


def isolation(level: int) -> Isolation:
    """
    How far a client reads.
    """
    if level not in (0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no isolation level {level}, but 0 and 1")
    return Isolation.READ_COMMITTED if level else Isolation.READ_UNCOMMITTED


def check_leader_epoch(partition: IPartition, epoch: int) -> None:
    """
    Refuse the client whose metadata is older than ours, or newer (KIP-320); below 0 it names no epoch.
    """
    if epoch < 0 or epoch == partition.leader_epoch:
        return
    code = ErrorCode.FENCED_LEADER_EPOCH if epoch < partition.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    raise KafkaError(code, f"the client knows leader epoch {epoch}, the partition is in {partition.leader_epoch}")


def foreseen(error: BaseException | None, subject: str) -> KafkaError:
    """
    The error as one that a client can be told. A bug of ours is logged, and costs one partition its answer, not all.
    """
    if isinstance(error, KafkaError):
        return error
    _log.failure("{subject} could not be served", Failure(error), subject=subject)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}; the gateway's log has more")


def endpoints(context: Context, node_ids: Iterable[int]) -> Iterator[tuple[Node, Address]]:
    """
    Where the client reaches those of the nodes that are in the cluster.
    """
    view = context.broker.view()
    for node_id in node_ids:
        node = view.node(node_id)
        if node:
            yield node, context.address(node)


def name_leaders(response: Any, misled: Iterable[tuple[Topic | None, int, Any]], context: Context) -> None:
    """
    Say in answers to clients that asked the wrong node who leads their partitions, and in the response where those
    nodes are (KIP-951). Responses differ in what they are, and are alike in how they say this.
    """
    leaders: dict[int, None] = {}  # in the order in which they were named
    for topic, index, answer in misled:
        if topic and 0 <= index < len(topic.partitions):
            state = topic.partitions[index]
            answer.current_leader = answer.CurrentLeader(leader_id=state.leader_id, leader_epoch=state.leader_epoch)
            leaders[state.leader_id] = None
    response.node_endpoints = [
        response.NodeEndpoint(node_id=node.id, host=address.host, port=address.port, rack=node.rack)
        for node, address in endpoints(context, leaders)
    ]
