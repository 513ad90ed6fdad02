"""
A client outside of the group that asks the server for committed offsets and the state of the group.
"""

from dataclasses import dataclass
from time import time

from kgateway.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kgateway.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgateway.messages.offset_fetch import OffsetFetchRequest
from kgateway.wire.errors import ErrorCode
from tests.clients.groups.events import Place, Seen
from tests.clients.groups.member import Tell
from tests.clients.groups.members.reports import place
from tests.faults.background import ServerPoller
from tests.faults.client import Client

_PAUSE_S = 0.1
_FETCH_VERSION, _DESCRIBE_VERSION, _CONSUMER_DESCRIBE_VERSION = 8, 5, 0
_NOT_NOW = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


@dataclass(frozen=True)
class Group:
    state: str
    epoch: int  # -1 if the kind of group has none
    members: int


def committed(client: Client, group: str) -> dict[Place, int] | None:
    """
    The committed offsets, or none if the server is not ready.
    """
    request = OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=group, topics=None)])
    (answer,) = client.ask(request, _FETCH_VERSION).groups
    if answer.error_code in _NOT_NOW:
        return None
    partitions = [(topic.name, partition) for topic in answer.topics for partition in topic.partitions]
    if answer.error_code or any(partition.error_code for _, partition in partitions):
        raise ValueError(answer)
    return {place(name, partition.partition_index): partition.committed_offset for name, partition in partitions}


def described(client: Client, group: str) -> Group:
    """
    The group, whichever protocol it has.
    """
    found = details(client, group)
    epoch = -1 if isinstance(found, DescribeGroupsResponse.Group) else found.group_epoch
    return Group(found.group_state, epoch, len(found.members))


def details(client: Client, group: str) -> DescribeGroupsResponse.Group | ConsumerGroupDescribeResponse.Group:
    """
    All details that the server describes.
    """
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    found: ConsumerGroupDescribeResponse.Group
    (found,) = client.ask(request, _CONSUMER_DESCRIBE_VERSION).groups
    if not found.error_code:
        return found
    classic: DescribeGroupsResponse.Group
    (classic,) = client.ask(DescribeGroupsRequest(groups=[group]), _DESCRIBE_VERSION).groups
    return classic


class Observer(ServerPoller):
    """
    Asks for committed offsets repeatedly in a thread, and reports them.
    """

    def __init__(self, port: int, group: str, tell: Tell) -> None:
        self.failure: BaseException | None = None
        self.asked = 0
        self.last: dict[Place, int] = {}
        super().__init__(port, _PAUSE_S)
        self._group = group
        self._tell = tell

    def _fail(self, failure: BaseException) -> None:
        self.failure = failure

    def _ask(self, client: Client) -> None:
        since = time()
        found = committed(client, self._group)
        if found is not None:
            self.asked += 1
            self.last = found
            self._tell(Seen(time(), since, found))
