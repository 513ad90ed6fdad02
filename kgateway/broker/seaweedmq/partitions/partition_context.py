"""
What a partition is made from: its place in the cluster, and its state when it is opened.
"""

from collections.abc import Callable
from typing import NamedTuple

from twisted.internet.interfaces import IReactorTime

from kgateway.broker.partition.leader_epochs import LeaderEpochs
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.formats.format import MessageFormat
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger
from kgateway.broker.seaweedmq.partitions.side_files import FilerSideFiles
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc, assignment_to


class PartitionContext(NamedTuple):
    topic: str
    index: int  # type: ignore[assignment]  # a tuple's method of that name is of no use here
    files: PartitionFiles
    format: MessageFormat
    seaweed: SeaweedCluster
    rpc: BrokerRpc
    clock: IReactorTime
    client: str  # the gateway's name as a publisher
    check_lease: Callable[[], None]  # raises if another gateway may lead by now
    side_files: FilerSideFiles
    is_foreign: bool  # whether others have made the topic
    is_removed: bool  # another program has removed the partition, which gets no more messages
    ledger: PartitionLedger

    async def assignment(self) -> BrokerPartitionAssignment:
        """
        The broker that has the partition now.
        """
        return assignment_to(self.files.folders[-1], await self.rpc.assignments(self.topic))


class InitialState(NamedTuple):
    """
    The state of a partition when it is opened.
    """

    log_start: int
    end: FilesEnd
    epochs: LeaderEpochs
    producers: ProducerTable
