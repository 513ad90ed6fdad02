"""
What the owner of a cluster's topics works with.
"""

from collections.abc import Callable
from typing import NamedTuple

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweedmq.exported_offsets import ExportedOffsets
from kgateway.broker.seaweedmq.kept_configs import KeptConfigs
from kgateway.broker.seaweedmq.kept_ledgers import KeptLedgers
from kgateway.broker.seaweedmq.making import Making
from kgateway.broker.seaweedmq.offset_files import OffsetFiles
from kgateway.broker.seaweedmq.owner import Ownership
from kgateway.broker.seaweedmq.producer_ids import ProducerIds
from kgateway.broker.seaweedmq.site import Site
from kgateway.broker.seaweedmq.state_topics import StateTopics
from kgateway.broker.seaweedmq.topics import Topics


class Parts(NamedTuple):
    """
    Under one epoch.
    """

    topics: Topics
    states: StateTopics
    making: Making
    ledgers: KeptLedgers
    offset_files: OffsetFiles
    offsets: ExportedOffsets
    configs: KeptConfigs
    ids: ProducerIds
    demand_ownership: Callable[[], None]  # a KafkaError where another gateway may be the owner by now


def parts(site: Site, filer: Filer, ownership: Ownership, demand: Callable[[], None]) -> Parts:
    """
    All of them; `filer` decides chains.
    """
    seaweed, namespace = site.seaweed, site.namespace
    topics, system = Topics(seaweed, namespace, demand), Topics(seaweed, f"{namespace}-system", demand)
    files = OffsetFiles(seaweed, namespace, demand)
    ledgers = KeptLedgers(system, Making(site, system, demand), site.reactor, ownership.epoch)
    return Parts(
        topics,
        StateTopics(site, filer, demand),
        Making(site, topics, demand, ledgers),
        ledgers,
        files,
        ExportedOffsets(files, site.reactor),
        KeptConfigs(seaweed, site.folder, demand),
        ProducerIds(site.shared_chain(filer, "producer-ids"), ownership.cluster_id),
        demand,
    )
