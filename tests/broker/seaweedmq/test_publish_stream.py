"""
The messages of a publisher are encoded as on the wire.
"""

from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweed.protos.messaging_pb2 import DataMessage, PublishMessageRequest
from kgateway.broker.seaweedmq.publishing.publish_stream import encode_publish_request


@given(st.binary(max_size=300), st.binary(max_size=40_000))
def test_messages_are_what_protobuf_makes_of_them(key: bytes, value: bytes) -> None:
    request = PublishMessageRequest(data=DataMessage(key=key, value=value))
    assert encode_publish_request(key, memoryview(value)) == request.SerializeToString()
