"""
Two gateways in front of one cluster: one leads, the other stands by and takes over.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from time import monotonic, sleep, time

import pytest
from confluent_kafka import Producer

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.leadership.gateways import GONE_S
from kgateway.broker.seaweedmq.leadership.lease import LOCK_S
from kgateway.broker.topic_changes import being_changed
from kgateway.messages.create_partitions import CreatePartitionsRequest
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.delete_topics import DeleteTopicsRequest
from kgateway.messages.describe_configs import DescribeConfigsRequest
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kgateway.messages.init_producer_id import InitProducerIdRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.records.builder import BatchBuilder
from kgateway.wire.errors import ErrorCode
from kgateway.wire.schema import Message
from tests.faults.client import PRODUCE_VERSION, Client, batch_of, produce_request, produced
from tests.faults.ledger import PartitionName
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.gateway_pair import (
    METADATA_VERSION,
    TAKE_OVER_S,
    Pair,
    leads,
    metadata,
    until,
    until_leader,
    until_told,
)
from tests.faults.seaweedmq.kafka_requests import NOT_YET, all_values, produce, produce_until_taken

_PAUSE_S = 0.05
_SLOW_S = 2.0
_CREATE_VERSION = 7
_GROUP, _TIMEOUT = 32, "consumer.session.timeout.ms"


@pytest.fixture
def pair(cluster: DevCluster, tmp_path: Path) -> Iterator[Pair]:
    found = Pair(cluster, tmp_path, f"two-{monotonic():.0f}")
    try:
        yield found
    finally:
        found.end()


def test_the_second_waits_and_takes_over_when_the_first_is_killed(pair: Pair) -> None:
    """
    It has everything that was acknowledged, even what was in no file.
    """
    with Client(pair.first.port) as client:
        for number in range(50):
            produce_until_taken(client, pair.place, b"first %d" % number)
    assert not leads(pair.second)
    pair.first.kill()
    pair.wait_for_second()
    with Client(pair.second.port) as client:
        produce_until_taken(client, pair.place, b"second")
    assert all_values(pair.second, pair.place) == [*(b"first %d" % number for number in range(50)), b"second"]


def test_the_second_takes_over_at_once_when_the_first_ends_in_good_order(pair: Pair) -> None:
    """
    It need not wait until the lock has expired.
    """
    with Client(pair.first.port) as client:
        produce_until_taken(client, pair.place, b"first")
    pair.first.stop()
    assert pair.wait_for_second() < 5
    assert all_values(pair.second, pair.place) == [b"first"]


def until_sent_away(client: Client, place: PartitionName) -> None:
    """
    Produce until the connection is closed; nothing is accepted, because clients have to use another gateway.
    """
    deadline = monotonic() + TAKE_OVER_S
    while (code := code_of(client, place)) is not None and monotonic() < deadline:
        assert code == NOT_YET
    assert code is None, "it may stay"


def late_codes(client: Client, late: Sequence[int]) -> set[int]:
    """
    The error codes for records that were sent while the gateway slept, as long as the connection is open: it may notice
    amid them that another gateway leads.
    """
    codes = set()
    for each in late:
        try:
            codes.add(produced(client.answer(ProduceRequest, PRODUCE_VERSION, each)).error_code)
        except ConnectionError:
            break
        except AssertionError as failure:
            assert "the connection was closed" in str(failure)  # noqa: PT017  # and nothing else is wrong
            break
    return codes


def code_of(client: Client, place: PartitionName) -> int | None:
    """
    The error code for a record; nothing if the connection is closed.
    """
    try:
        return produce(client, place, b"after")
    except (AssertionError, ConnectionError):
        return None


def produce_with_both(pair: Pair) -> None:
    """
    A client that knows both addresses finds the gateway that leads.
    """
    producer = Producer({"bootstrap.servers": pair.bootstrap, "message.timeout.ms": 20_000})
    producer.produce(pair.place[0], b"by both", partition=0)
    assert producer.flush(20) == 0


def test_who_was_asleep_stops_serving(pair: Pair) -> None:
    """
    The second takes over from a paused gateway. When that one resumes it takes nothing more, and is no obstacle:
    records that either has acknowledged are there, once.
    """
    with Client(pair.first.port) as client:
        for number in range(50):
            produce_until_taken(client, pair.place, b"first %d" % number)
        pair.first.pause()
        requests = [produce_request(pair.place[0], batch_of(b"late %d" % number)) for number in range(20)]
        late = [client.send(request, PRODUCE_VERSION) for request in requests]
        pair.wait_for_second()
        with Client(pair.second.port) as other:
            produce_until_taken(other, pair.place, b"second")
        pair.first.resume()
        assert late_codes(client, late) == {NOT_YET}
        until_sent_away(client, pair.place)
        until_told(pair.first, 2, {1, 2})
        with Client(pair.first.port) as asked:
            assert produce(asked, pair.place, b"to the wrong one") == NOT_YET
        produce_with_both(pair)
        with Client(pair.second.port) as other:
            produce_until_taken(other, pair.place, b"second, too")
    expected = [*(b"first %d" % number for number in range(50)), b"second", b"by both", b"second, too"]
    assert all_values(pair.second, pair.place) == expected
    pair.second.stop()
    until_leader(pair.first, 2)
    until_told(pair.first, 1, {1})
    with Client(pair.first.port) as client:  # and it takes over again
        produce_until_taken(client, pair.place, b"first again")
    assert all_values(pair.first, pair.place) == [*expected, b"first again"]


def test_who_was_asleep_sends_no_clients_to_itself(pair: Pair) -> None:
    """
    It answers requests from meanwhile before it knows that another one leads. It shows all gateways, because clients
    that know of none give up.
    """
    with Client(pair.first.port) as client:
        client.ask(MetadataRequest(topics=None), METADATA_VERSION)
        pair.first.pause()
        late = [client.send(MetadataRequest(topics=None), METADATA_VERSION) for _ in range(3)]
        pair.wait_for_second()
        pair.first.resume()
        answers = [client.answer(MetadataRequest, METADATA_VERSION, each) for each in late]
    assert [{broker.node_id for broker in answer.brokers} for answer in answers] == [{1, 2}] * 3
    assert {answer.controller_id for answer in answers} == {-1}
    assert {part.leader_id for each in answers for topic in each.topics for part in topic.partitions} == {-1}


def test_who_was_asleep_changes_nothing(pair: Pair) -> None:
    """
    It refuses requests from meanwhile, because changes of another leader would be undone.
    """
    name, added = pair.place[0], f"added-{pair.place[0]}"
    removal = DeleteTopicsRequest(topic_names=[name], topics=[], timeout_ms=9_000)
    growth = CreatePartitionsRequest.Topic(name=name, count=3, assignments=None)
    with Client(pair.first.port) as client:
        pair.first.pause()
        late = [
            (removal, 5),
            (CreateTopicsRequest(topics=[new_topic(added)]), _CREATE_VERSION),
            (CreatePartitionsRequest(topics=[growth], timeout_ms=9_000, validate_only=False), 3),
            (setting("early", "51000"), 1),
        ]
        numbers = [client.send(*each) for each in late]
        pair.wait_for_second()
        with Client(pair.second.port) as other:
            until(lambda: other.ask(*late[0]).responses[0].error_code == ErrorCode.NONE)  # it has just begun
            pair.second.create(name, 1, "held", "batch")
            produce_until_taken(other, pair.place, b"of the new one")
            assert other.ask(setting("later", "52000"), 1).responses[0].error_code == ErrorCode.NONE
        pair.first.resume()
        assert codes_until_closed(client, numbers, late) <= {ErrorCode.NOT_CONTROLLER}
    pair.second.kill()
    until_told(pair.first, 1, {1})
    assert all_values(pair.first, pair.place) == [b"of the new one"]
    assert added not in {topic.name for topic in metadata(pair.first).topics}
    with Client(pair.first.port) as client:
        found = client.ask(DescribeConfigsRequest(resources=[*map(session_timeout, ("early", "later"))]), 4).results
    assert [each.configs[0].value for each in found] == ["45000", "52000"]


def codes_until_closed(client: Client, numbers: Sequence[int], asked: Sequence[tuple[Message, int]]) -> set[int]:
    """
    The error codes, as long as the connection is open: each request is about one thing.
    """
    codes = set()
    with suppress(AssertionError):
        for number, (request, version) in zip(numbers, asked, strict=True):
            answer = client.answer(type(request), version, number)
            [told] = next(getattr(answer, name) for name in ("responses", "topics", "results") if hasattr(answer, name))
            codes.add(told.error_code)
    return codes


def new_topic(name: str) -> CreateTopicsRequest.Topic:
    return CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=-1, assignments=[], configs=[])


def setting(group: str, value: str) -> IncrementalAlterConfigsRequest:
    """
    A change of the session timeout of a group.
    """
    config = IncrementalAlterConfigsRequest.Resource.Config(name=_TIMEOUT, config_operation=0, value=value)
    asked = IncrementalAlterConfigsRequest.Resource(resource_type=_GROUP, resource_name=group, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[asked], validate_only=False)


def session_timeout(group: str) -> DescribeConfigsRequest.Resource:
    return DescribeConfigsRequest.Resource(resource_type=_GROUP, resource_name=group, configuration_keys=[_TIMEOUT])


def test_who_was_asleep_and_is_told_to_stop_forgets_nobody(cluster: DevCluster, tmp_path: Path, pair: Pair) -> None:
    """
    Another gateway led meanwhile, and has stored its producer state: a retry of a batch that it took is recognized.
    """
    with Client(pair.first.port) as client:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        producer_id = client.ask(asked, 4).producer_id
        until(lambda: sent(client, pair.place, producer_id, 0) == ErrorCode.NONE)
    pair.first.pause()
    pair.wait_for_second()
    with Client(pair.second.port) as other:
        for sequence in range(1, 4):
            until(lambda: sent(other, pair.place, producer_id, sequence) == ErrorCode.NONE)  # noqa: B023
    pair.second.stop()
    stopping = Thread(target=pair.first.stop)
    stopping.start()
    pair.first.resume()
    stopping.join()
    third = Gateway(cluster, tmp_path, "third", node_id=3)
    third.start()
    try:
        with Client(third.port) as client:
            until(lambda: sent(client, pair.place, producer_id, 3) == ErrorCode.NONE)
        assert all_values(third, pair.place) == [b"0", b"1", b"2", b"3"]
    finally:
        third.end()


def sent(client: Client, place: PartitionName, producer_id: int, sequence: int) -> int:
    """
    The error code for a record of an idempotent producer.
    """
    builder = BatchBuilder()
    builder.producer_id, builder.producer_epoch, builder.base_sequence = producer_id, 0, sequence
    builder.append(None, b"%d" % sequence, timestamp=int(time() * 1000))
    request = produce_request(place[0], builder.build(), partition=place[1])
    return int(produced(client.ask(request, PRODUCE_VERSION)).error_code)


def test_who_was_asleep_finds_out_that_another_one_came_and_went(pair: Pair) -> None:
    """
    The lock is free again when it resumes; records that the other one took are there.
    """
    with Client(pair.first.port) as client:
        produce_until_taken(client, pair.place, b"first")
        pair.first.pause()
        pair.wait_for_second()
        with Client(pair.second.port) as other:
            produce_until_taken(other, pair.place, b"second")
        pair.second.stop()
        pair.first.resume()
        until_sent_away(client, pair.place)
    until_leader(pair.first, 2)
    until_told(pair.first, 1, {1})
    with Client(pair.first.port) as client:
        produce_until_taken(client, pair.place, b"first again")
    assert not leads(pair.first, 3)
    assert all_values(pair.first, pair.place) == [b"first", b"second", b"first again"]


def test_a_waiting_gateway_that_is_gone_is_told_of_no_more(pair: Pair) -> None:
    """
    It may have been stopped or killed.
    """
    pair.second.kill()
    until_told(pair.first, 1, {1})
    pair.second.start()
    until_told(pair.first, 1, {1, 2})
    pair.second.stop()
    began = monotonic()
    until_told(pair.first, 1, {1})
    assert monotonic() - began < GONE_S / 2
    assert not leads(pair.first, 2)


def test_one_that_is_stopping_takes_nothing_over(pair: Pair) -> None:
    """
    It waits for answers until the leader's lock has expired, and its ports are closed already. The leader continues
    when it resumes.
    """
    with Client(pair.second.port) as client:
        pair.first.pause()
        client.send(CreateTopicsRequest(topics=[new_topic("never")]), _CREATE_VERSION)
        began = monotonic()
        pair.second.stop()
        assert monotonic() - began > LOCK_S
    assert not leads(pair.second)
    pair.first.resume()
    until_told(pair.first, 1, {1})


def test_one_with_the_address_of_the_leader_closes_its_port(cluster: DevCluster, tmp_path: Path) -> None:
    """
    Both may be behind one load balancer, so it could send nobody to the leader.
    """
    second = Gateway(cluster, tmp_path, "second", 2)
    first = Gateway(cluster, tmp_path, "first", advertised=second.bootstrap)
    why = f"node 1 advertises {second.bootstrap}, as this one does; correct --advertise"
    try:
        first.start()
        second.start()
        until(lambda: f"ports stay closed while another gateway leads: {why}\n" in second.log)
        until(lambda: is_closed(second))
    finally:
        first.end()
        second.end()


def is_closed(gateway: Gateway) -> bool:
    """
    Whether no process listens at its port.
    """
    with suppress(ConnectionResetError):  # it is just being closed
        try:
            Client(gateway.port).socket.close()
        except ConnectionRefusedError:
            return True
    return False


def test_a_third_tells_of_the_one_that_took_over(cluster: DevCluster, tmp_path: Path, pair: Pair) -> None:
    """
    It has shown another leader before.
    """
    gateways = {2: pair.second, 3: Gateway(cluster, tmp_path, "third", node_id=3)}
    gateways[3].start()
    try:
        until_told(gateways[3], 1, {1, 2, 3})
        pair.first.kill()
        until(lambda: any(map(leads, gateways.values())))
        [leader] = [number for number in gateways if leads(gateways[number])]
        [third] = gateways.keys() - {leader}
        until_told(gateways[third], leader, {2, 3})
        told = metadata(gateways[third])
        assert {broker.node_id: broker.port for broker in told.brokers} == {
            number: gateway.port for number, gateway in gateways.items()
        }
        assert {part.leader_id for topic in told.topics for part in topic.partitions} == {leader}
        gateways[third].create(f"third-{pair.place[0]}", 1, "held", "batch")
        assert f"third-{pair.place[0]}" in {topic.name for topic in metadata(gateways[leader]).topics}
    finally:
        gateways[3].end()


def test_changes_while_nobody_leads_can_be_asked_for_again(pair: Pair) -> None:
    """
    The standby says so at once.
    """
    topic = new_topic("later")
    with Client(pair.second.port) as client:
        pair.first.kill()
        [told] = client.ask(CreateTopicsRequest(topics=[topic]), _CREATE_VERSION).topics
    assert told.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert told.error_message.startswith(f"node 1 cannot be reached at {pair.first.bootstrap}: Connection was refused")
    pair.wait_for_second()
    pair.second.create(f"later-{pair.place[0]}", 1, "held", "batch")


def test_it_takes_over_from_one_that_stands_still_with_much_to_do_for_others(pair: Pair) -> None:
    """
    Clients that wait for answers of the leader do not prevent it.
    """
    with ExitStack() as clients:
        pair.first.pause()
        for number in range(30):
            client = clients.enter_context(Client(pair.second.port))
            client.send(CreateTopicsRequest(topics=[new_topic(f"much-{number}")]), _CREATE_VERSION)
        assert pair.wait_for_second() < TAKE_OVER_S
        began = monotonic()
        until_told(pair.second, 2, {2})
        with Client(pair.second.port) as other:
            produce_until_taken(other, pair.place, b"second")
        assert monotonic() - began < TAKE_OVER_S
        pair.first.resume()


@pytest.mark.parametrize(
    ("interface", "node_id", "why"),
    [
        ("127.0.0.1", 1, "the leader has the node id 1, like this gateway; give each a --node-id of its own"),
        ("0.0.0.0", 2, "node 1 advertises no address for its plaintext"),  # all of them
    ],
)
def test_a_second_that_cannot_tell_of_the_first_waits_with_its_port_closed(
    cluster: DevCluster, tmp_path: Path, interface: str, node_id: int, why: str
) -> None:
    """
    It has the id of the first, or the first does not say where it is reached. Its port opens when it leads.
    """
    first = Gateway(cluster, tmp_path, "first", interface=interface)
    second = Gateway(cluster, tmp_path, "second", node_id, interface)
    first.start()
    starting = Thread(target=second.start)
    starting.start()
    try:
        until(lambda: f"ports stay closed while another gateway leads: {why}\n" in second.log)
        until_told(first, 1, {1})
        with pytest.raises(ConnectionRefusedError):
            Client(second.port)
        assert second.log.count("ports stay closed") == 1
        first.kill()
        starting.join(TAKE_OVER_S)
        until_told(second, node_id, {node_id})
    finally:
        first.end()
        starting.join(TAKE_OVER_S)
        second.end()


def test_a_port_opens_when_the_leader_says_where_it_is(cluster: DevCluster, tmp_path: Path) -> None:
    """
    The leader is restarted with other settings, and leads again.
    """
    first = Gateway(cluster, tmp_path, "first", interface="0.0.0.0")  # all of them
    mended = Gateway(cluster, tmp_path, "mended")
    second = Gateway(cluster, tmp_path, "second", 2)
    first.start()
    starting = Thread(target=second.start)
    starting.start()
    try:
        until(lambda: "ports stay closed" in second.log)
        second.pause()
        first.stop()
        mended.start()
        second.resume()
        until_told(second, 1, {1, 2})
    finally:
        for gateway in (first, mended):
            gateway.end()
        starting.join(TAKE_OVER_S)
        second.end()


def test_wrong_addresses_do_not_have_a_gateway_ask_itself_for_ever(cluster: DevCluster, tmp_path: Path) -> None:
    """
    It answers that a change is under way, because it gets that answer from itself.
    """
    second = Gateway(cluster, tmp_path, "second", 2)
    first = Gateway(cluster, tmp_path, "first", advertised=f"localhost:{second.port}")  # which no text shows
    try:
        first.start()
        second.start()
        topic = new_topic(f"circle-{tmp_path.name}")
        with Client(second.port) as client:
            [told] = client.ask(CreateTopicsRequest(topics=[topic]), _CREATE_VERSION).topics
        assert ErrorCode(told.error_code) == being_changed(topic.name).code
        assert told.error_message == being_changed(topic.name).message
    finally:
        first.end()
        second.end()


def test_a_filer_that_is_restarted_changes_no_leader(cluster: DevCluster, pair: Pair) -> None:
    """
    The second gateway gives the first one time to renew its lock.
    """
    with Client(pair.first.port) as client:
        produce_until_taken(client, pair.place, b"before")
        pair.first.pause()  # it is slow to ask
        cluster.server.kill()
        cluster.start_server()
        sleep(_SLOW_S)
        pair.first.resume()
        produce_until_taken(client, pair.place, b"after")
        sleep(LOCK_S + 1)  # as long as the second one waits at most
        produce_until_taken(client, pair.place, b"later")
    assert not leads(pair.second)
    assert not leads(pair.first, 2)
    assert all_values(pair.first, pair.place) == [b"before", b"after", b"later"]
