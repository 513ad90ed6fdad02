"""
What a gateway asks the brokers of SeaweedMQ, by name.
"""

from kgateway.broker.seaweed.grpc.method import Method
from kgateway.broker.seaweed.protos import messaging_pb2 as mq

_SERVICE = "/messaging_pb.SeaweedMessaging/"

CONFIGURE = Method(f"{_SERVICE}ConfigureTopic", mq.ConfigureTopicRequest, mq.ConfigureTopicResponse)
CONFIGURATION = Method(
    f"{_SERVICE}GetTopicConfiguration", mq.GetTopicConfigurationRequest, mq.GetTopicConfigurationResponse
)
PUBLISHERS = Method(f"{_SERVICE}GetTopicPublishers", mq.GetTopicPublishersRequest, mq.GetTopicPublishersResponse)
ASSIGN = Method(f"{_SERVICE}AssignTopicPartitions", mq.AssignTopicPartitionsRequest, mq.AssignTopicPartitionsResponse)
PUBLISH = Method(f"{_SERVICE}PublishMessage", mq.PublishMessageRequest, mq.PublishMessageResponse)
FETCH = Method(f"{_SERVICE}FetchMessage", mq.FetchMessageRequest, mq.FetchMessageResponse)
RANGE = Method(f"{_SERVICE}GetPartitionRangeInfo", mq.GetPartitionRangeInfoRequest, mq.GetPartitionRangeInfoResponse)
