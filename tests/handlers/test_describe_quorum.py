"""
DescribeQuorum.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.handlers.describe_quorum import describe_quorum
from kgateway.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kgateway.server.answers import refused
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import refusal
from tests.serving import Serving

Topic = DescribeQuorumRequest.Topic


class DescribeQuorumTests(SynchronousTestCase):
    def test_there_is_no_quorum(self) -> None:
        """
        The response has the reason in versions with a field for it.
        """
        topic = Topic(topic_name="__cluster_metadata", partitions=[Topic.Partition(partition_index=0)])
        for version in describe_quorum.versions:
            request = DescribeQuorumRequest(topics=[topic])
            error = refusal(Serving().ask, describe_quorum, request, version)
            assert error.code is ErrorCode.UNSUPPORTED_VERSION
            assert error.message == (
                "there is no metadata quorum: kgateway keeps the cluster's metadata (records in memory, gone when this "
                "process ends), and no controllers that vote"
            )
            answer = refused(request, DescribeQuorumResponse, version, error)
            assert answer is not None
            told = error.message if version >= 2 else None
            assert (answer.error_code, answer.error_message) == (error.code, told), version
