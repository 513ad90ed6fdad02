"""
Where a gateway stands: before which cluster, under which name, and by which clock.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kgateway.broker.seaweed.chain import Chain
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.layout import namespace_folder
from kgateway.broker.spool import Spool


class Site(NamedTuple):
    """
    Of one gateway.
    """

    seaweed: Seaweed
    namespace: str
    client: str  # as whom it locks, follows and publishes
    now_ms: Callable[[], int]
    reactor: Any
    producer_expiry_ms: int
    topic_defaults: Mapping[str, str]
    spool: Spool  # of what was published lately

    @property
    def folder(self) -> str:
        """
        Where it keeps what is of no topic.
        """
        return f"{namespace_folder(self.namespace)}/.meta/kgateway"

    def shared_chain(self, filer: Filer, name: str) -> Chain:
        """
        A chain to which every gateway of this namespace may append.
        """
        return Chain(filer, f"{self.folder}/{name}", self.seaweed.retrying, shared=True)
