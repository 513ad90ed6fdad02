"""
Request and response headers, and the two exceptions for ApiVersions.
"""

import pytest

from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.messages.fetch import FetchResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.wire.codec import decode, decoder, encode
from kgateway.wire.errors import Malformed
from kgateway.wire.frames import Framer
from kgateway.wire.headers import (
    RequestHeader,
    peek,
    request_frame,
    request_header_version,
    response_frame,
    response_header_version,
)


def test_client_ids_have_classic_lengths() -> None:
    """
    A flexible request header has an i16 length for the client id, and tags behind it.
    """
    header = RequestHeader(request_api_key=3, request_api_version=12, correlation_id=5, client_id="me")
    assert encode(header, 2) == bytes.fromhex("0003 000c 00000005 0002 6d65 00")
    assert decode(RequestHeader, 2, encode(header, 2)) == header


def test_all_headers_begin_alike() -> None:
    """
    Key, version and correlation id are read before the header's version is known.
    """
    assert peek(bytes.fromhex("0003 000c 00000005 0002 6d65 00")) == (3, 12, 5)
    with pytest.raises(Malformed, match="RequestHeader v0: correlation_id at byte 7"):
        peek(bytes(7))


def test_flexible_bodies_have_flexible_headers() -> None:
    """
    Metadata is flexible from v9 on.
    """
    assert [request_header_version(MetadataRequest, version) for version in (8, 9)] == [1, 2]
    assert [response_header_version(MetadataResponse, version) for version in (8, 9)] == [0, 1]


def test_api_versions_responses_have_header_v0() -> None:
    """
    Its request header follows the rule.
    """
    assert request_header_version(ApiVersionsRequest, 3) == 2
    assert [response_header_version(ApiVersionsResponse, version) for version in (2, 3, 4)] == [0, 0, 0]


def test_unknown_versions_of_api_versions_have_the_newest_header() -> None:
    """
    So the request can be answered.
    """
    assert request_header_version(ApiVersionsRequest, 99) == 2


def test_a_request_frame_round_trips() -> None:
    """
    It is size, header and body, found in the stream and read back.
    """
    request = MetadataRequest(topics=[MetadataRequest.Topic(name="a")])
    parts = request_frame(request, 9, correlation_id=5, client_id="me")
    (frame,) = Framer().feed(b"".join(parts))
    assert peek(frame) == (3, 9, 5)
    header, start = decoder(RequestHeader, 2)(frame, 0)
    assert header.client_id == "me"
    assert decoder(MetadataRequest, 9)(frame, start) == (request, len(frame))


def test_a_response_frame_does_not_copy_records() -> None:
    """
    They are among its buffers unchanged, and its size counts every byte of a view.
    """
    records = memoryview(bytes(80)).cast("q")
    partition = FetchResponse.Response.Partition(
        partition_index=0, error_code=0, high_watermark=1, last_stable_offset=1, records=records
    )
    response = FetchResponse(responses=[FetchResponse.Response(topic="a", partitions=[partition])])
    parts = response_frame(response, 12, correlation_id=5)
    assert any(part is records for part in parts)
    (frame,) = Framer().feed(b"".join(parts))
    assert frame == bytes.fromhex("00000005 00") + encode(response, 12)
