"""
Topics as the journal keeps them, and as the cluster shows them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kgateway.broker.log.folder import DataFolder
from kgateway.broker.log.folder_error import FolderError
from kgateway.broker.log.topic_journal import StoredTopic
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.names import blurred
from kgateway.cluster.view import ClusterView, PartitionState, Topic
from kgateway.wire.errors import KafkaError


def stored(topic: Topic, start_number: int) -> StoredTopic:
    """
    What the journal keeps of a topic, of which this is the start of that number.
    """
    return StoredTopic(
        id=topic.id,
        name=topic.name,
        partition_count=len(topic.partitions),
        config=topic.config.overrides,
        internal=topic.internal,
        born=start_number - topic.partitions[0].leader_epoch,
    )


def with_stored(
    view: ClusterView, data: DataFolder, topics: Iterable[StoredTopic], defaults: Mapping[str, str]
) -> ClusterView:
    """
    The cluster with all topics of a journal. Each start is a new leader epoch.
    """
    shown = [_shown(topic, data, defaults) for topic in topics]
    return replace(
        view,
        cluster_id=data.cluster_id,
        topics={topic.name: topic for topic in shown},
        topics_by_id={topic.id: topic for topic in shown},
        blurred_names={blurred(topic.name): topic.name for topic in shown},
    )


def _shown(topic: StoredTopic, data: DataFolder, defaults: Mapping[str, str]) -> Topic:
    try:
        config = TopicConfig.of(topic.config, defaults)
    except KafkaError as error:
        raise FolderError(
            f"topic {topic.name} in {data.path}: {error.message}; start a kgateway that knows it"
        ) from None
    nodes = (data.node_id,)
    led = PartitionState(data.node_id, data.start_number - topic.born, nodes, nodes)
    return Topic(topic.id, topic.name, (led,) * topic.partition_count, config, topic.internal)
