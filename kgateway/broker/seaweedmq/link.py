"""
What leads to one partition of SeaweedMQ.
"""

from collections.abc import Callable
from typing import NamedTuple

from twisted.internet.interfaces import IReactorTime

from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.beside import Beside
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.messaging import Messaging
from kgateway.broker.seaweedmq.partition_ledger import PartitionLedger


class Link(NamedTuple):
    """
    For one partition.
    """

    topic: str
    index: int  # type: ignore[assignment]  # a tuple's method of that name is of no use here
    history: History
    form: Form
    seaweed: Seaweed
    messaging: Messaging
    clock: IReactorTime
    client: str  # as whom it publishes
    demand_ownership: Callable[[], None]  # a KafkaError where another gateway may own the partition by now
    beside: Beside
    is_found: bool  # whether others have made the topic
    ledger: PartitionLedger | None = None  # where one is kept
