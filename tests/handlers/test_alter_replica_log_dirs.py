"""
AlterReplicaLogDirs.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic
from kgateway.handlers.alter_replica_log_dirs import alter_replica_log_dirs
from kgateway.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kgateway.wire.errors import ErrorCode
from tests.serving import Serving

HERE = "memory"
Dir = AlterReplicaLogDirsRequest.Dir


class AlterReplicaLogDirsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        self.successResultOf(self.serving.broker.create_topic(NewTopic("orders", 2)))

    def ask(self, *moves: tuple[str, str, list[int]], version: int = 2) -> list[tuple[str, dict[int, int]]]:
        dirs = [Dir(path=path, topics=[Dir.Topic(name=name, partitions=indexes)]) for path, name, indexes in moves]
        answer = self.successResultOf(
            self.serving.ask(alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=dirs), version)
        )
        return [
            (result.topic_name, {one.partition_index: one.error_code for one in result.partitions})
            for result in answer.results
        ]

    def test_the_current_directory_is_accepted(self) -> None:
        for version in alter_replica_log_dirs.versions:
            assert self.ask((HERE, "orders", [0, 1]), version=version) == [("orders", {0: 0, 1: 0})]

    def test_other_directories_are_refused(self) -> None:
        """
        There is one directory for all partitions.
        """
        told = self.ask(("/other", "orders", [0, 7]), (f"{HERE}/", "nowhere", [0]))
        code = ErrorCode.LOG_DIR_NOT_FOUND
        assert told == [("orders", {0: code, 7: code}), ("nowhere", {0: code})]
        assert {refusal.subject for refusal in self.serving.context.refusals or []} == {
            "orders-0",
            "orders-7",
            "nowhere-0",
        }

    def test_unknown_partitions_are_refused(self) -> None:
        told = self.ask((HERE, "orders", [2, -1]), (HERE, "nowhere", [0]))
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert told == [("orders", {2: code, -1: code}), ("nowhere", {0: code})]

    def test_the_later_of_two_directories_counts(self) -> None:
        """
        So it does in Kafka.
        """
        assert self.ask(("/other", "orders", [0]), (HERE, "orders", [0, 1])) == [("orders", {0: 0, 1: 0})]
        assert self.ask((HERE, "orders", [0]), ("/other", "orders", [0])) == [
            ("orders", {0: ErrorCode.LOG_DIR_NOT_FOUND})
        ]
