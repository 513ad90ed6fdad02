"""
The limits of memory, time and depth in decoding, whatever the bytes are.

Memory is what tracemalloc sees at most while a frame is decoded, the frame itself not counted. Of frames that are one
list with as many of the smallest items as fit, the worst costs 67 times its bytes: partitions of a ProduceRequest from
v9 on, six bytes each, which become a struct, a view and a number. Next come structs of three bytes with an empty list
in them, 57 times, and lists of one-byte numbers, 48 times. The largest of the smallest items is a member of a
StreamsGroupDescribeResponse, 890 bytes of memory; ITEMS_MAX of them would be 890 MB. A request has fewer items by far.
"""

import sys
import tracemalloc
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import process_time
from types import FrameType

import pytest

from kgateway.messages.create_partitions import CreatePartitionsRequest
from kgateway.messages.describe_configs import DescribeConfigsRequest
from kgateway.messages.describe_groups import DescribeGroupsRequest
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.messages.list_config_resources import ListConfigResourcesRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.messages.txn_offset_commit import TxnOffsetCommitResponse
from kgateway.messages.unserved.quotas import AlterClientQuotasRequest
from kgateway.messages.unserved.streams_group_records import StreamsGroupTopologyValue
from kgateway.wire.codec import decode, encode
from kgateway.wire.codec_writer import STRING_BYTES_MAX
from kgateway.wire.decoding import ITEMS_MAX, NUMBERS_AN_ITEM, REQUEST_ITEM_BYTES, REQUEST_ITEMS
from kgateway.wire.errors import Malformed
from kgateway.wire.headers import ResponseHeader
from kgateway.wire.schema import Message
from tests.fuzz.anatomy import Form, lists
from tests.fuzz.attacks import bloated
from tests.fuzz.properties import allowed_seconds, refusal
from tests.fuzz.seeds import MESSAGES, seeds

AMPLIFICATION = 75  # bytes of memory for each byte of a frame
ANYWAY = 16 << 10  # memory that an empty frame needs too, or other threads meanwhile
DEPTH = 6  # _try, decode, the function around the generated one, that one, and two for a varint

every_message = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)


def items_max(size: int) -> int:
    """
    The most items in a request of this size.
    """
    return min(REQUEST_ITEMS + size // REQUEST_ITEM_BYTES, ITEMS_MAX)


def _cases(*cases: tuple[type[Message], int, str]) -> pytest.MarkDecorator:
    ids = [f"{message.__name__}-v{version}-{path}" for message, version, path in cases]
    return pytest.mark.parametrize(("message", "version", "path"), cases, ids=ids)


def peak_bytes(message: type[Message], version: int, frame: bytes) -> int:
    """
    The peak of memory while a frame is decoded, or refused.
    """
    tracemalloc.start()
    try:
        _try(message, version, frame)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _try(message: type[Message], version: int, frame: bytes) -> None:
    with suppress(Malformed):
        decode(message, version, frame)


@every_message
def test_memory(message: type[Message]) -> None:
    """
    Whichever list has as many of the smallest items as possible, memory remains below a multiple of the frame.
    """
    for version in message.__spec__.versions:
        for path in lists(message, version):
            frame = bloated(message, version, path, 2 << 10)
            decode(message, version, frame)  # for what is made only once
            peak = peak_bytes(message, version, frame)
            assert peak < AMPLIFICATION * len(frame) + ANYWAY, f"v{version} {path}: {peak} for {len(frame)}"


@_cases(
    (ProduceRequest, 13, "topic_data.partition_data"),
    (AlterClientQuotasRequest, 1, "entries"),
    (ListConfigResourcesRequest, 1, "resource_types"),
)
def test_memory_of_large_frames(message: type[Message], version: int, path: str) -> None:
    """
    The multiple does not grow with the frame.
    """
    frame = bloated(message, version, path, 256 << 10)
    assert peak_bytes(message, version, frame) < AMPLIFICATION * len(frame)


@_cases(
    (ProduceRequest, 9, "topic_data"),
    (FetchResponse, 12, "responses.partitions"),
    (MetadataRequest, 9, "topics"),
    (CreatePartitionsRequest, 3, "topics.assignments"),
    (StreamsGroupTopologyValue, 0, "subtopologies.copartition_groups"),
    (TxnOffsetCommitResponse, 3, "topics"),
)
def test_time(message: type[Message], version: int, path: str) -> None:
    """
    A megabyte of the smallest items takes time in proportion to its size, or less if there are too many items.
    """
    frame = bloated(message, version, path, 1 << 20)
    started = process_time()
    _try(message, version, frame)
    assert process_time() - started < allowed_seconds(len(frame))


def test_many_tags() -> None:
    """
    A megabyte of empty unknown tags takes time in proportion, and no memory.
    """
    count = 1 << 19
    frame = bytes(4) + Form.UNSIGNED.written(count) + b"\x7f\0" * count
    started = process_time()
    decode(ResponseHeader, 1, frame)
    assert process_time() - started < allowed_seconds(len(frame))
    assert peak_bytes(ResponseHeader, 1, frame) < ANYWAY


@pytest.mark.parametrize(
    ("path", "version", "of", "together"),
    [
        ("groups", 5, lambda count: DescribeGroupsRequest(groups=[""] * count), 1),
        ("resource_types", 1, lambda count: ListConfigResourcesRequest(resource_types=[0] * count), NUMBERS_AN_ITEM),
    ],
    ids=["strings", "numbers"],
)
def test_items_are_counted(path: str, version: int, of: Callable[[int], Message], together: int) -> None:
    """
    The size of a request limits its items, even if it has the bytes for more; nothing is allocated for the rest.
    """

    def is_too_many(count: int) -> bool:
        return count // together > items_max(len(encode(of(count), version)))

    message, too_many = type(of(0)), bisect_left(range(10 * REQUEST_ITEMS), True, key=is_too_many)
    most = decode(message, version, encode(of(too_many - 1), version))
    assert len(getattr(most, path)) == too_many - 1
    frame = encode(of(too_many), version)
    malformed = refusal(message, version, frame)
    assert malformed.field.path == path
    assert f"more than {items_max(len(frame))} items" in malformed.reason
    assert peak_bytes(message, version, frame) < ANYWAY


def test_items_of_all_lists_are_counted() -> None:
    """
    Many lists may have no more items together than one list.
    """
    resource = DescribeConfigsRequest.Resource(resource_type=2, resource_name="", configuration_keys=[""] * 4000)
    frame = encode(DescribeConfigsRequest(resources=[resource] * 500), 4)
    malformed = refusal(DescribeConfigsRequest, 4, frame)
    assert malformed.field.path == "resources.configuration_keys"
    assert f"more than {items_max(len(frame))} items" in malformed.reason
    # Until then, each item takes a slot of a list, and an eighth more where lists grow.
    assert peak_bytes(DescribeConfigsRequest, 4, frame) < 10 * items_max(len(frame))


@pytest.mark.parametrize("version", [5, 12])
def test_a_mirror_of_a_hundred_thousand_partitions_is_served(version: int) -> None:
    """
    Requests of real clients, with many topics or with one, are within the limit.
    """

    def wanted(index: int) -> FetchRequest.Topic.Partition:
        return FetchRequest.Topic.Partition(partition=index, fetch_offset=0, partition_max_bytes=1)

    many = [FetchRequest.Topic(topic=f"orders-{index}", partitions=[wanted(0)]) for index in range(100_000)]
    one = [FetchRequest.Topic(topic="orders", partitions=[wanted(index) for index in range(100_000)])]
    for topics in (many, one):
        frame = encode(FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics), version)
        assert len(decode(FetchRequest, version, frame).topics) == len(topics)


def test_a_hundred_megabytes_have_no_more_items_than_a_response() -> None:
    """
    The limit, which grows with the size, has a maximum.
    """
    assert items_max(100 << 20) == ITEMS_MAX


def test_strings_are_short() -> None:
    """
    A string is no longer than Kafka's longest, in the compact form too, even if the bytes for it are there.
    """
    longest = encode(DescribeGroupsRequest(groups=["x" * STRING_BYTES_MAX]), 5)
    decode(DescribeGroupsRequest, 5, longest)
    head = Form.COMPACT.written(1) + Form.COMPACT.written(STRING_BYTES_MAX)
    assert longest.startswith(head)
    longer = Form.COMPACT.written(1) + Form.COMPACT.written(STRING_BYTES_MAX + 1) + b"x" + longest[len(head) :]
    assert refusal(DescribeGroupsRequest, 5, longer).field.path == "groups"


@every_message
def test_depth(message: type[Message]) -> None:
    """
    However deep a table is nested, decoding it, or failing to, takes no deeper calls than for a flat one.
    """
    for seed in seeds(message):
        decode(message, seed.version, seed.data)  # which writes the function, whose depth does follow the table
        for data in (seed.data, seed.data[: len(seed.data) // 2]):
            assert _deepest(partial(_try, message, seed.version, data)) <= DEPTH


def _deepest(function: Callable[[], None]) -> int:
    depth = most = 0

    def follow(frame: FrameType, event: str, argument: object) -> None:
        nonlocal depth, most
        depth += (event == "call") - (event == "return")
        most = max(most, depth)

    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        function()
    finally:
        sys.setprofile(before)
    return most
