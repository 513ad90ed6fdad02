"""
Error responses. Those written out here are what the `getErrorResponse` of Kafka 4.3 makes, except for fields that
nobody reads beside an error.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from kgateway.messages.api_versions import ApiVersionsResponse
from kgateway.messages.catalogue import apis
from kgateway.messages.create_topics import CreateTopicsResponse
from kgateway.messages.delete_topics import DeleteTopicsRequest
from kgateway.messages.describe_configs import DescribeConfigsResponse
from kgateway.messages.describe_groups import DescribeGroupsResponse
from kgateway.messages.fetch import FetchRequest
from kgateway.messages.heartbeat import HeartbeatResponse
from kgateway.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.server.answers import error_finder, refused, unsupported_version
from kgateway.wire.codec import decode, encode
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType, i16, i32
from kgateway.wire.uuids import ZERO, Uuid

M = TypeVar("M", bound=Message)

ID = Uuid(range(16))
ERROR = KafkaError(ErrorCode.NOT_CONTROLLER, "ask node 2")
API = {api.name: api for api in apis().values()}

# The only responses without a place for the code: their items are directories, and the request names topics.
NO_PLACE = [("DescribeLogDirs", version) for version in (0, 1, 2)]


@dataclass(frozen=True)
class Sample:
    """
    Values for the fields of requests. A bare sample has null wherever it may, and items without items.
    """

    text: str = "orders"
    number: int = 1
    uuid: Uuid = ID
    flag: bool = True
    bare: bool = False

    def one_of_each(self, message: type[M], version: int) -> M:
        """
        The message with all fields of the version, and one item in each list.
        """
        filled: M = self._struct(message, version)
        return filled

    def _struct(self, struct: type[Struct], version: int) -> Any:
        fields = [field for field in struct.__fields__ if version in field.versions]
        return struct(**{field.name: self._field(field, version, issubclass(struct, Message)) for field in fields})

    def _field(self, field: Field, version: int, outermost: bool) -> Any:
        if self.bare and version in field.nullable:
            return None
        if self.bare and isinstance(field.type, ListOf) and not outermost:
            return []
        return self._value(field.type, version)

    def _value(self, kind: WireType, version: int) -> Any:
        match kind:
            case Fixed("?"):
                return self.flag
            case Text():
                return self.text
            case Binary() | Referenced():
                return b""
            case UuidType():
                return self.uuid
            case ListOf(item):
                return [self._value(item, version)]
            case StructOf(struct):
                return self._struct(struct, version)
            case _:
                return self.number


def over_the_wire(message: M, version: int) -> M:
    return decode(type(message), version, encode(message, version))


def answer(request: Message, name: str, version: int) -> dict[str, Any] | None:
    """
    A failed request's response as the client reads it, with the fields of the version only.
    """
    response = refused(over_the_wire(request, version), API[name].response, version, ERROR)
    return None if response is None else plain(over_the_wire(response, version), version)


def plain(struct: Struct, version: int) -> dict[str, Any]:
    fields = [f for f in struct.__fields__ if version in f.versions and f.name != "throttle_time_ms"]
    return {field.name: _plain(getattr(struct, field.name), version) for field in fields}


def _plain(value: Any, version: int) -> Any:
    match value:
        case Struct():
            return plain(value, version)
        case list():
            return [_plain(item, version) for item in value]
        case memoryview():
            return bytes(value)
        case _:
            return value


@pytest.mark.parametrize("name", API)
def test_every_error_response_has_its_code(name: str) -> None:
    """
    This holds for each API and version.
    """
    api = API[name]
    for version in api.request.__spec__.versions:
        request = over_the_wire(Sample().one_of_each(api.request, version), version)
        response = refused(request, api.response, version, ERROR)
        if (name, version) in NO_PLACE:
            assert response is None, version
        else:
            assert response is not None, version
            found = error_finder(api.response)(over_the_wire(response, version))
            assert {code for code, _ in found} == {ERROR.code}, version


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("Heartbeat", 4, {"error_code": 41}),
        ("SaslAuthenticate", 2, {"error_code": 41, "error_message": "ask node 2", "auth_bytes": b"",
            "session_lifetime_ms": 0}),
        ("OffsetFetch", 2, {"error_code": 41, "topics": []}),
        ("OffsetDelete", 0, {"error_code": 41, "topics": []}),
        ("AddPartitionsToTxn", 4, {"error_code": 41, "results_by_transaction": []}),
        ("AlterShareGroupOffsets", 0, {"error_code": 41, "error_message": "ask node 2", "responses": []}),
        ("LeaveGroup", 5, {"error_code": 41, "members": []}),
        ("JoinGroup", 6, {"error_code": 41, "generation_id": -1, "protocol_name": "", "leader": "", "member_id": "",
            "members": []}),
    ],
)  # fmt: skip
def test_a_response_with_an_error_code_needs_no_items(name: str, version: int, expected: dict[str, Any]) -> None:
    """
    The request may name items, and itself.
    """
    assert answer(Sample().one_of_each(API[name].request, version), name, version) == expected


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("ListOffsets", 5, {"topics": [{"name": "orders", "partitions": [
            {"partition_index": 1, "error_code": 41, "timestamp": -1, "offset": -1, "leader_epoch": -1}]}]}),
        ("OffsetCommit", 9, {"topics": [{"name": "orders", "partitions": [{"partition_index": 1, "error_code": 41}]}]}),
        ("OffsetCommit", 10, {"topics": [{"topic_id": ID, "partitions": [{"partition_index": 1, "error_code": 41}]}]}),
        ("OffsetForLeaderEpoch", 4, {"topics": [{"topic": "orders", "partitions": [
            {"error_code": 41, "partition": 1, "leader_epoch": -1, "end_offset": -1}]}]}),
        ("TxnOffsetCommit", 5, {"topics": [{"name": "orders", "partitions": [
            {"partition_index": 1, "error_code": 41}]}]}),
        ("DeleteRecords", 2, {"topics": [{"name": "orders", "partitions": [
            {"partition_index": 1, "low_watermark": -1, "error_code": 41}]}]}),
        ("DescribeConfigs", 1, {"results": [{"error_code": 41, "error_message": "ask node 2", "resource_type": 1,
            "resource_name": "orders", "configs": []}]}),
        ("AlterConfigs", 2, {"responses": [{"error_code": 41, "error_message": "ask node 2", "resource_type": 1,
            "resource_name": "orders"}]}),
        ("CreatePartitions", 3, {"results": [{"name": "orders", "error_code": 41, "error_message": "ask node 2"}]}),
        ("CreateAcls", 3, {"results": [{"error_code": 41, "error_message": "ask node 2"}]}),
        ("DeleteAcls", 3, {"filter_results": [{"error_code": 41, "error_message": "ask node 2", "matching_acls": []}]}),
        ("AlterClientQuotas", 1, {"entries": [{"error_code": 41, "error_message": "ask node 2", "entity": [
            {"entity_type": "orders", "entity_name": "orders"}]}]}),
    ],
)  # fmt: skip
def test_items_of_the_request_are_mirrored(name: str, version: int, expected: dict[str, Any]) -> None:
    """
    A response without an error code of its own has an item with name and code for each item of the request; other
    fields are not repeated.
    """
    assert answer(Sample().one_of_each(API[name].request, version), name, version) == expected


@pytest.mark.parametrize(
    ("version", "name"), [(3, {"name": "orders"}), (12, {"name": "orders"}), (13, {"topic_id": ID})]
)
def test_produce_partitions_are_mirrored(version: int, name: dict[str, Any]) -> None:
    """
    A partition is under its topic's name or, from v13 on, its id, with no offset.
    """
    response = answer(Sample().one_of_each(ProduceRequest, version), "Produce", version)
    assert response is not None
    partition = response["responses"][0].pop("partition_responses")[0]
    assert response["responses"] == [name]
    assert (partition["index"], partition["error_code"], partition["base_offset"]) == (1, 41, -1)


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("DeleteTopics", 4, {"responses": [{"name": "orders", "error_code": 41}]}),
        ("FindCoordinator", 6, {"coordinators": [{"key": "orders", "node_id": -1, "host": "", "port": -1,
            "error_code": 41, "error_message": "ask node 2"}]}),
        ("DescribeGroups", 2, {"groups": [{"error_code": 41, "group_id": "orders", "group_state": "",
            "protocol_type": "", "protocol_data": "", "members": []}]}),
        ("DeleteGroups", 2, {"results": [{"group_id": "orders", "error_code": 41}]}),
        ("OffsetFetch", 1, {"topics": [{"name": "orders", "partitions": [
            {"partition_index": 1, "committed_offset": -1, "metadata": "", "error_code": 41}]}]}),
        ("AddPartitionsToTxn", 3, {"results_by_topic_v3_and_below": [{"name": "orders", "results_by_partition": [
            {"partition_index": 1, "partition_error_code": 41}]}]}),
    ],
)  # fmt: skip
def test_plain_items_are_names(name: str, version: int, expected: dict[str, Any]) -> None:
    """
    A text or number in the request is the item's name.
    """
    assert answer(Sample().one_of_each(API[name].request, version), name, version) == expected


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("AlterReplicaLogDirs", 2, {"results": [{"topic_name": "orders", "partitions": [
            {"partition_index": 1, "error_code": 41}]}]}),
        ("AlterUserScramCredentials", 0, {"results": [{"user": "orders", "error_code": 41,
            "error_message": "ask node 2"}] * 2}),
    ],
)  # fmt: skip
def test_items_under_other_names_are_mirrored(name: str, version: int, expected: dict[str, Any]) -> None:
    """
    The request may have them deeper, in several lists, or under another name.
    """
    assert answer(Sample().one_of_each(API[name].request, version), name, version) == expected


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("OffsetFetch", 8, {"groups": [{"group_id": "orders", "topics": [], "error_code": 41}]}),
        ("DescribeShareGroupOffsets", 1, {"groups": [{"group_id": "orders", "topics": [], "error_code": 41,
            "error_message": "ask node 2"}]}),
        ("DescribeTopicPartitions", 0, {"topics": [{"error_code": 41, "name": "orders", "topic_id": ZERO,
            "is_internal": False, "partitions": [], "topic_authorized_operations": -(1 << 31)}],
            "next_cursor": None}),
    ],
)  # fmt: skip
def test_the_outer_item_has_the_code(name: str, version: int, expected: dict[str, Any]) -> None:
    """
    Inner items have it only where the outer one cannot.
    """
    assert answer(Sample().one_of_each(API[name].request, version), name, version) == expected


@pytest.mark.parametrize(
    ("name", "version", "labels"),
    [
        ("Fetch", 6, ["orders-1"]),
        ("Fetch", 7, ["", "orders-1"]),
        ("Fetch", 12, ["", "orders-1"]),
        ("Fetch", 13, [""]),
        ("Metadata", 12, ["orders"]),
        ("Metadata", 13, ["", "orders"]),
        ("ElectLeaders", 0, ["orders-1"]),
        ("ElectLeaders", 2, ["", "orders-1"]),
        ("AlterPartitionReassignments", 1, ["", "orders-1"]),
    ],
)
def test_codes_that_clients_expect_twice(name: str, version: int, labels: list[str]) -> None:
    """
    Some clients look into the items although the response has a code of its own.
    """
    request = over_the_wire(Sample().one_of_each(API[name].request, version), version)
    response = refused(request, API[name].response, version, ERROR)
    assert response is not None
    found = error_finder(API[name].response)(over_the_wire(response, version))
    assert found == [(ERROR.code, label) for label in labels]


def test_lists_that_the_version_lacks_are_empty() -> None:
    request = Sample().one_of_each(OffsetFetchRequest, 8)
    response = refused(request, OffsetFetchResponse, 8, ERROR)
    assert response is not None
    assert (len(response.groups), response.topics) == (1, [])


def test_forgotten_partitions_are_not_mirrored() -> None:
    """
    A fetch drops them from its session.
    """
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[],
        forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="orders", partitions=[1])],
    )
    response = answer(request, "Fetch", 7)
    assert response == {"error_code": 41, "session_id": 0, "responses": []}


def test_a_refused_fetch_has_empty_records() -> None:
    """
    For some clients null is malformed.
    """
    response = answer(Sample().one_of_each(FetchRequest, 11), "Fetch", 11)
    assert response is not None
    assert response["responses"][0]["partitions"][0]["records"] == b""


@pytest.mark.parametrize(("version", "name"), [(10, ""), (11, ""), (12, None)])
def test_a_topic_requested_by_id(version: int, name: str | None) -> None:
    """
    The id is mirrored, and the name is null only where the version allows it.
    """
    request = MetadataRequest(topics=[MetadataRequest.Topic(topic_id=ID, name=None)])
    response = answer(request, "Metadata", version)
    assert response is not None
    assert [(topic["topic_id"], topic["name"]) for topic in response["topics"]] == [(ID, name)]


def test_a_topic_that_was_not_created_has_no_partitions() -> None:
    """
    The response does not repeat the requested number.
    """
    response = answer(Sample().one_of_each(API["CreateTopics"].request, 5), "CreateTopics", 5)
    assert response == {
        "topics": [
            {
                "name": "orders",
                "error_code": 41,
                "error_message": "ask node 2",
                "topic_config_error_code": 0,
                "num_partitions": -1,
                "replication_factor": -1,
                "configs": None,
            }
        ]
    }


def test_unknown_numbers_are_minus_one() -> None:
    """
    They are ids, epochs, offsets, times and ports.
    """
    for name, version, fields in (
        ("InitProducerId", 5, ["producer_id", "producer_epoch"]),
        ("FindCoordinator", 3, ["node_id", "port"]),
        ("RenewDelegationToken", 2, ["expiry_timestamp_ms"]),
    ):
        response = answer(Sample().one_of_each(API[name].request, version), name, version)
        assert response is not None
        assert {response[field] for field in fields} == {-1}, name
    response = answer(Sample().one_of_each(API["DescribeTransactions"].request, 0), "DescribeTransactions", 0)
    assert response is not None
    assert response["transaction_states"][0]["transaction_start_time_ms"] == -1


def test_a_request_without_items_has_no_error_response() -> None:
    """
    Only items could have the code, and an empty response would look like success.
    """
    assert answer(MetadataRequest(topics=None), "Metadata", 12) is None
    assert answer(MetadataRequest(topics=None), "Metadata", 13) is not None
    assert answer(DeleteTopicsRequest(topics=[], timeout_ms=0), "DeleteTopics", 6) is None


def test_the_default_message_is_the_meaning_of_the_code() -> None:
    request = Sample().one_of_each(API["CreateAcls"].request, 3)
    response = refused(request, API["CreateAcls"].response, 3, KafkaError(ErrorCode.SECURITY_DISABLED))
    assert response is not None
    assert plain(response, 3)["results"][0]["error_message"] == ErrorCode.SECURITY_DISABLED.meaning


def test_responses_share_nothing() -> None:
    """
    Appending to a list of one does not change the next.
    """
    request = ListGroupsRequest()
    for _ in range(2):
        response = refused(request, ListGroupsResponse, 0, ERROR)
        assert response is not None
        assert response.groups == []
        response.groups.append(ListGroupsResponse.Group(group_id="g", protocol_type="consumer"))


def test_unsupported_version() -> None:
    """
    An unknown version of ApiVersions is answered in v0, with the versions of ApiVersions only.
    """
    served = {0: (range(3, 14), "Produce"), 18: (range(1, 5), "ApiVersions")}
    response = over_the_wire(unsupported_version(served), 0)
    only = ApiVersionsResponse.ApiKey(api_key=18, min_version=1, max_version=4)
    assert (response.error_code, response.api_keys) == (ErrorCode.UNSUPPORTED_VERSION, [only])


def _produced(*codes: int, topic: dict[str, Any]) -> ProduceResponse:
    partition = ProduceResponse.Response.PartitionResponse
    made = [partition(index=index, error_code=code, base_offset=0) for index, code in enumerate(codes)]
    return ProduceResponse(responses=[ProduceResponse.Response(partition_responses=made, **topic)])


def test_success_has_no_errors() -> None:
    assert error_finder(ProduceResponse)(_produced(0, 0, topic={"name": "orders"})) == []


def test_errors_are_labelled() -> None:
    """
    Each error of many partitions is found with its partition, and its topic by name or else by id.
    """
    find = error_finder(ProduceResponse)
    assert find(_produced(0, 6, 0, 3, topic={"name": "orders"})) == [(6, "orders-1"), (3, "orders-3")]
    assert find(_produced(6, topic={"topic_id": ID})) == [(6, f"{ID}-0")]


def test_an_error_of_the_whole_response_has_no_label() -> None:
    assert error_finder(HeartbeatResponse)(HeartbeatResponse(error_code=27)) == [(27, "")]


def test_labels_are_names() -> None:
    """
    The label distinguishes items: a group's id, a resource's name and not its type.
    """
    groups = Sample(text="g", number=3).one_of_each(DescribeGroupsResponse, 6)
    assert error_finder(DescribeGroupsResponse)(groups) == [(3, "g")]
    configs = Sample(number=2).one_of_each(DescribeConfigsResponse, 4)
    assert error_finder(DescribeConfigsResponse)(configs) == [(2, "orders")]
    quotas = Sample(number=2).one_of_each(API["AlterClientQuotas"].response, 1)
    assert error_finder(API["AlterClientQuotas"].response)(quotas) == [(2, "")]


def test_all_error_codes_are_found() -> None:
    """
    They may be in the response, in items, in items of items, and second in an item.
    """
    metadata = Sample(number=3).one_of_each(MetadataResponse, 13)
    assert error_finder(MetadataResponse)(metadata) == [(3, ""), (3, "orders"), (3, "orders-3")]
    topics = Sample(number=3).one_of_each(CreateTopicsResponse, 7)
    topics.topics[0].topic_config_error_code = 29
    assert error_finder(CreateTopicsResponse)(topics) == [(3, "orders"), (29, "orders")]


class Polled(Message, key=1000, versions="0"):
    """
    A response as a plugin may define it.
    """

    class Item(Struct):
        number: i32
        error_code: i16

    items: list[Item] | None


def test_a_null_list_has_no_errors() -> None:
    find = error_finder(Polled)
    assert find(Polled(items=None)) == []
    assert find(Polled(items=[Polled.Item(number=4, error_code=3)])) == [(3, "4")]


def test_a_finder_is_compiled_once() -> None:
    assert error_finder(HeartbeatResponse) is error_finder(HeartbeatResponse)
