"""
DescribeLogDirs.
"""

from collections.abc import Iterable

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import DiskUsage, Origin
from kgateway.cluster.view import NewTopic
from kgateway.handlers.describe_log_dirs import describe_log_dirs
from kgateway.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import batch
from tests.serving import Denying, Serving

VERSIONS = range(1, 6)
Topic = DescribeLogDirsRequest.Topic


class DescribeLogDirsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        self.size = batch(5).header.size
        for name, count in (("orders", 2), ("other", 1)):
            topic = self.successResultOf(self.serving.broker.create_topic(NewTopic(name, count)))
            self.serving.broker.partition(topic.id, 0).append(batch(5), Origin.COORDINATOR)

    def ask(self, topics: list[Topic] | None, version: int = 5) -> DescribeLogDirsResponse.Result:
        answer = self.successResultOf(
            self.serving.ask(describe_log_dirs, DescribeLogDirsRequest(topics=topics), version)
        )
        [result] = answer.results
        assert (answer.error_code, result.error_code, result.is_cordoned) == (0, 0, False)
        assert isinstance(result, DescribeLogDirsResponse.Result)
        return result

    def sizes(self, topics: list[Topic] | None, version: int = 5) -> dict[tuple[str, int], int]:
        found = [(topic.name, one) for topic in self.ask(topics, version).topics for one in topic.partitions]
        assert not any(one.offset_lag or one.is_future_key for _, one in found)
        return {(name, one.partition_index): one.partition_size for name, one in found}

    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert describe_log_dirs.versions == VERSIONS

    def test_all_partitions_are_measured(self) -> None:
        """
        Without a list of topics the response has all of them, in the one directory.
        """
        for version in VERSIONS:
            assert self.ask(None, version).log_dir == "memory"
            sizes = {("orders", 0): self.size, ("orders", 1): 0, ("other", 0): self.size}
            assert self.sizes(None, version) == sizes, version

    def test_named_partitions_are_measured(self) -> None:
        """
        Unknown ones are left out.
        """
        some = [Topic(topic="orders", partitions=[1, 7, -1, 1]), Topic(topic="nowhere", partitions=[0])]
        assert self.sizes(some) == {("orders", 1): 0}
        assert self.sizes([Topic(topic="orders", partitions=[7])]) == {}
        assert self.sizes([]) == {}

    def test_free_space_is_returned_if_known(self) -> None:
        told = self.ask(None)
        assert (told.total_bytes, told.usable_bytes) == (-1, -1)

        def measure(partitions: Iterable[PartitionId]) -> Deferred[DiskUsage]:
            return succeed(DiskUsage(dict.fromkeys(partitions, 7), 100, 60))

        self.patch(self.serving.broker, "measure", measure)
        told = self.ask(None)
        assert (told.total_bytes, told.usable_bytes) == (100, 60)
        assert self.sizes([Topic(topic="other", partitions=[0])]) == {("other", 0): 7}

    def test_permission_is_needed(self) -> None:
        """
        A client that may not describe the cluster learns nothing.
        """
        self.serving = Serving(Denying())
        request = DescribeLogDirsRequest(topics=None)
        refused = self.failureResultOf(self.serving.ask(describe_log_dirs, request, 5), KafkaError)
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
