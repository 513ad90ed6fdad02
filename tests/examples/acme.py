"""
A gateway with acme-kgateway, seen from outside. The tests run with the example in a folder, and with it installed.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Message, Producer

from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.builder import BatchBuilder
from kgateway.testing.kafka import Kafka
from kgateway.wire import schema
from kgateway.wire.errors import ErrorCode
from kgateway.wire.schema import Struct, v
from kgateway.wire.types import i16, i32, i64
from kgateway.wire.uuids import ZERO, Uuid
from tests.examples.client import PATIENCE_S, Client

PUBLIC, INTERNAL = range(2)
LISTENERS = ("--listen", "public=tcp:0:interface=127.0.0.1", "--listen", "internal=tcp:0:interface=127.0.0.1")
NONE, REFUSED = ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED


class CountRecordsRequest(schema.Message, key=20_000, versions="0-1", flexible="0+"):
    """
    The example's table, as written in a client that does not know the plugin.
    """

    topics: list[str]


class CountRecordsResponse(schema.Message, key=20_000, versions="0-1", flexible="0+"):
    class Topic(Struct):
        name: str
        error_code: i16
        error_message: str | None = v("1+", default=None)
        count: i64

    throttle_time_ms: i32
    topics: list[Topic]


def produce(*topics: str | Uuid, acks: int = -1) -> ProduceRequest:
    """
    A record for the first partition of each topic, by name or by id.
    """
    builder = BatchBuilder()
    builder.append(None, b"value", timestamp=1_700_000_000_000)
    records = [ProduceRequest.TopicData.PartitionData(index=0, records=builder.build())]
    data = [
        ProduceRequest.TopicData(topic_id=topic, partition_data=records)
        if isinstance(topic, Uuid)
        else ProduceRequest.TopicData(name=topic, partition_data=records)
        for topic in topics
    ]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=data)


def codes(response: ProduceResponse) -> dict[str | Uuid, int]:
    return {topic.name or topic.topic_id: topic.partition_responses[0].error_code for topic in response.responses}


class Acme:
    """
    The tests, which need a fixture `acme`: a gateway with those LISTENERS.
    """

    @pytest.fixture
    def client(self, acme: Kafka) -> Iterator[Client]:
        with Client(acme.addresses[PUBLIC]) as client:
            yield client

    @pytest.fixture
    def insider(self, acme: Kafka) -> Iterator[Client]:
        with Client(acme.addresses[INTERNAL]) as client:
            yield client

    def test_the_added_api_is_announced(self, client: Client) -> None:
        """
        ApiVersions has its key and versions.
        """
        served = client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0).api_keys
        assert [(api.min_version, api.max_version) for api in served if api.api_key == 20_000] == [(0, 1)]

    def test_the_added_api_answers(self, client: Client) -> None:
        """
        Both versions return the number of records, and the reason if there is none.
        """
        client.create("counted.topic")
        client.ask(produce("counted.topic"), ProduceResponse, 12)
        for version, message in ((0, None), (1, "there is no topic nowhere.topic")):
            request = CountRecordsRequest(topics=["counted.topic", "nowhere.topic"])
            counted, nowhere = client.ask(request, CountRecordsResponse, version).topics
            assert (counted.name, counted.error_code, counted.count) == ("counted.topic", NONE, 1)
            assert (nowhere.error_code, nowhere.count) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
            assert nowhere.error_message == message

    def test_the_replaced_versions_are_the_plugins(self, client: Client) -> None:
        """
        An old client is refused, and the topic still exists.
        """
        client.create("kept.topic")
        for version in (1, 4):
            request = DeleteTopicsRequest(topic_names=["kept.topic"], timeout_ms=10_000)
            [answer] = client.ask(request, DeleteTopicsResponse, version).responses
            assert (answer.name, answer.error_code) == ("kept.topic", ErrorCode.TOPIC_DELETION_DISABLED)
        assert client.id_of("kept.topic") is not None

    def test_the_other_versions_are_the_built_in_ones(self, client: Client) -> None:
        """
        A newer client can delete topics.
        """
        client.create("deleted.topic")
        topic = DeleteTopicsRequest.Topic(name="deleted.topic", topic_id=ZERO)
        [answer] = client.ask(DeleteTopicsRequest(topics=[topic], timeout_ms=10_000), DeleteTopicsResponse, 6).responses
        assert answer.error_code == NONE
        assert client.id_of("deleted.topic") is None

    def test_the_filter_refuses_its_topics_alone(self, client: Client) -> None:
        """
        The rest of the request is written; the client gets a throttle time.
        """
        client.create("audit-filtered.topic", "orders.topic")
        response = client.ask(produce("orders.topic", "audit-filtered.topic"), ProduceResponse, 12)
        assert codes(response) == {"orders.topic": NONE, "audit-filtered.topic": REFUSED}
        assert response.throttle_time_ms == 1000
        assert response.responses[1].partition_responses[0].error_message == (
            "audit-filtered.topic can only be written through listener internal"
        )

    def test_the_filter_knows_topics_by_id(self, client: Client) -> None:
        """
        Newer producers send ids.
        """
        client.create("audit-by.id", "orders-by.id")
        audit, orders = client.id_of("audit-by.id"), client.id_of("orders-by.id")
        assert audit
        assert orders
        assert codes(client.ask(produce(audit, orders), ProduceResponse, 13)) == {audit: REFUSED, orders: NONE}

    def test_the_filter_leaves_others_alone(self, client: Client, insider: Client) -> None:
        """
        Other topics, and clients of the right listener, are not affected.
        """
        client.create("audit-open.topic", "other.topic")
        for asked, topic in ((client, "other.topic"), (insider, "audit-open.topic")):
            response = asked.ask(produce(topic), ProduceResponse, 12)
            assert (codes(response), response.throttle_time_ms) == ({topic: NONE}, 0)

    def test_a_producer_without_acks_is_disconnected(self, client: Client) -> None:
        """
        With acks=0 the end of the connection reports the refusal.
        """
        client.create("audit-unanswered.topic")
        client.tell(produce("audit-unanswered.topic", acks=0), 12)
        assert client.is_sent_away()

    def test_a_real_producer_is_refused(self, acme: Kafka, client: Client) -> None:
        """
        librdkafka reports the error, and continues with other topics.
        """
        client.create("audit-real.topic", "real.topic")
        outcomes: dict[str, int | None] = {}

        def delivered(error: KafkaError | None, message: Message) -> None:
            outcomes[str(message.topic())] = error.code() if error else None

        producer = Producer({"bootstrap.servers": acme.addresses[PUBLIC], "message.timeout.ms": 20_000})
        for topic in ("audit-real.topic", "real.topic"):
            producer.produce(topic, b"value", on_delivery=delivered)
        assert producer.flush(PATIENCE_S) == 0
        assert outcomes == {"audit-real.topic": REFUSED, "real.topic": None}
