"""
Requests of administrators in few words.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgateway.messages.alter_configs import AlterConfigsRequest
from kgateway.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kgateway.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kgateway.messages.create_partitions import CreatePartitionsRequest
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.delete_records import DeleteRecordsRequest
from kgateway.messages.delete_topics import DeleteTopicsRequest
from kgateway.messages.describe_configs import DescribeConfigsRequest
from kgateway.messages.describe_log_dirs import DescribeLogDirsRequest
from kgateway.messages.describe_producers import DescribeProducersRequest
from kgateway.messages.describe_quorum import DescribeQuorumRequest
from kgateway.messages.elect_leaders import ElectLeadersRequest
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kgateway.messages.list_config_resources import ListConfigResourcesRequest
from kgateway.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kgateway.messages.unregister_broker import UnregisterBrokerRequest
from kgateway.messages.update_features import UpdateFeaturesRequest
from tests.clients.admin.sides import Side, comparable

Single = IncrementalAlterConfigsRequest.Resource
Whole = AlterConfigsRequest.Resource
NewTopic = CreateTopicsRequest.Topic
Grown = CreatePartitionsRequest.Topic
Cut = DeleteRecordsRequest.Topic
Dir = AlterReplicaLogDirsRequest.Dir
Elected = ElectLeadersRequest.TopicPartition
Moved = AlterPartitionReassignmentsRequest.Topic
Moving = ListPartitionReassignmentsRequest.Topic
Log = DescribeQuorumRequest.Topic
Update = UpdateFeaturesRequest.FeatureUpdate

Ask = Callable[[Side], Any]  # sends a request to one side, and returns a comparable response
Change = tuple[str, int, str | None]

TOPICS, BROKERS, LOGGERS, METRICS, GROUPS = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
_TIMEOUT_MS = 20_000


def alter(kind: int, name: str, *changes: Change, validate_only: bool = True) -> Ask:
    """
    Alter single configs of a resource.
    """
    configs = [Single.Config(name=key, config_operation=what, value=value) for key, what, value in changes]
    resource = Single(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return lambda side: comparable(side.ask(request, 1).responses)


def alter_twice(kind: int, name: str) -> Ask:
    """
    Alter a resource that is named twice, and one that is not.
    """
    resources = [Single(resource_type=kind, resource_name=name, configs=[]) for _ in range(2)]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=True)
    return lambda side: comparable(side.ask(request, 1).responses)


def replace(kind: int, name: str, *values: tuple[str, str | None]) -> Ask:
    """
    Replace all configs of a resource.
    """
    configs = [Whole.Config(name=key, value=value) for key, value in values]
    resource = Whole(resource_type=kind, resource_name=name, configs=configs)
    request = AlterConfigsRequest(resources=[resource], validate_only=True)
    return lambda side: comparable(side.ask(request, 2).responses)


def described(side: Side, kind: int, name: str, keys: Sequence[str] | None = None) -> Any:
    """
    The description of a resource as one side sends it.
    """
    names = None if keys is None else list(keys)
    resource = DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=names)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=False)
    [result] = side.ask(request, 4).results
    return result


def describe(kind: int, name: str, *keys: str) -> Ask:
    """
    Describe some configs of a resource; without keys only whether it has any.
    """

    def ask(side: Side) -> Any:
        result = described(side, kind, name, keys or None)
        if not keys:
            result.configs = bool(result.configs)
        return comparable(result)

    return ask


def create(
    name: str, count: int = 1, factor: int = 1, nodes: Mapping[int, list[int]] | None = None, **configs: Any
) -> Ask:
    """
    Validate a topic without creating it.
    """
    given = [NewTopic.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    assigned = [NewTopic.Assignment(partition_index=index, broker_ids=ids) for index, ids in (nodes or {}).items()]
    wanted = NewTopic(name=name, num_partitions=count, replication_factor=factor, assignments=assigned, configs=given)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=_TIMEOUT_MS, validate_only=True)

    def ask(side: Side) -> Any:
        [topic] = side.ask(request, 7).topics
        topic.configs = []
        return comparable(topic)

    return ask


def grow(name: str, count: int, assignments: Sequence[list[int]] | None = None) -> Ask:
    """
    Validate an increase of partitions without making it.
    """
    assigned = None if assignments is None else [Grown.Assignment(broker_ids=ids) for ids in assignments]
    topic = Grown(name=name, count=count, assignments=assigned)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS, validate_only=True)
    return lambda side: comparable(side.ask(request, 3).results)


def delete(*names: str) -> Ask:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=_TIMEOUT_MS)
    return lambda side: comparable(side.ask(request, 5).responses)


def delete_records(name: str, **offsets: int) -> Ask:
    """
    Delete records before these offsets, in `p0`, `p1`, ...
    """
    partitions = [Cut.Partition(partition_index=int(key[1:]), offset=offset) for key, offset in offsets.items()]
    request = DeleteRecordsRequest(topics=[Cut(name=name, partitions=partitions)], timeout_ms=_TIMEOUT_MS)
    return lambda side: comparable(side.ask(request, 2).topics)


def log_dirs(topics: Mapping[str, list[int]] | None, version: int = 5) -> Ask:
    """
    Describe sizes and directories; free space changes all the time, so only its presence is compared.
    """
    named = [DescribeLogDirsRequest.Topic(topic=name, partitions=found) for name, found in (topics or {}).items()]
    request = DescribeLogDirsRequest(topics=None if topics is None else named)

    def ask(side: Side) -> Any:
        answer = side.ask(request, version)
        for result in answer.results:
            result.log_dir = side.plain(result.log_dir)
            result.total_bytes, result.usable_bytes = result.total_bytes > 0, result.usable_bytes > 0
        return comparable(answer)

    return ask


def move(*moves: tuple[str, str, list[int]]) -> Ask:
    """
    Move partitions to directories, of which only `DATA` exists.
    """

    def ask(side: Side) -> Any:
        dirs = [
            Dir(path=path.replace("DATA", str(side.data)), topics=[Dir.Topic(name=name, partitions=found)])
            for path, name, found in moves
        ]
        return comparable(side.ask(AlterReplicaLogDirsRequest(dirs=dirs), 2))

    return ask


def elect(topics: Mapping[str, list[int]] | None, kind: int = 0, version: int = 2) -> Ask:
    named = None if topics is None else [Elected(topic=name, partitions=found) for name, found in topics.items()]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=named, timeout_ms=_TIMEOUT_MS)

    def ask(side: Side) -> Any:
        answer = side.ask(request, version)
        results = answer.replica_election_results
        answer.replica_election_results = [one for one in results if not one.topic.startswith("__")]
        return comparable(answer)

    return ask


def reassign(
    name: str, index: int, replicas: list[int] | None, version: int = 1, *, changes_factor: bool = True
) -> Ask:
    topic = Moved(name=name, partitions=[Moved.Partition(partition_index=index, replicas=replicas)])
    request = AlterPartitionReassignmentsRequest(topics=[topic], allow_replication_factor_change=changes_factor)
    return lambda side: comparable(side.ask(request, version))


def reassignments(topics: Mapping[str, list[int]] | None) -> Ask:
    """
    List the current reassignments.
    """
    named = None if topics is None else [Moving(name=name, partition_indexes=found) for name, found in topics.items()]
    return lambda side: comparable(side.ask(ListPartitionReassignmentsRequest(topics=named), 0))


def producers(topics: Mapping[str, list[int]]) -> Ask:
    named = [DescribeProducersRequest.Topic(name=name, partition_indexes=found) for name, found in topics.items()]
    return lambda side: comparable(side.ask(DescribeProducersRequest(topics=named), 0))


def quorum(name: str, index: int = 0, version: int = 2) -> Ask:
    topic = Log(topic_name=name, partitions=[Log.Partition(partition_index=index)])

    def ask(side: Side) -> Any:
        answer = side.ask(DescribeQuorumRequest(topics=[topic]), version)
        return {"error_code": answer.error_code, "topics": bool(answer.topics)}

    return ask


def update(*updates: tuple[str, int, int], version: int = 2) -> Ask:
    """
    Validate features without updating them.
    """
    wanted = [Update(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
    request = UpdateFeaturesRequest(feature_updates=wanted, validate_only=version > 0)
    return lambda side: comparable(side.ask(request, version))


def unregister(broker_id: int) -> Ask:
    return lambda side: comparable(side.ask(UnregisterBrokerRequest(broker_id=broker_id), 0))


def resources(*kinds: int, version: int = 1) -> Ask:
    """
    List the configurable resources, without internal topics, which may appear at any time.
    """

    def ask(side: Side) -> Any:
        answer = side.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
        found = answer.config_resources
        answer.config_resources = [one for one in found if not one.resource_name.startswith("__")]
        return comparable(answer)

    return ask
