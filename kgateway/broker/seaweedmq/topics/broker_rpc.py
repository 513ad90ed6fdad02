"""
The calls to SeaweedMQ's brokers: topics, leaders of partitions, and streams to publish by.
"""

from collections.abc import Callable, Iterable, Sequence

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.grpc.call_headers import Method, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.grpc.stream import Stream
from kgateway.broker.seaweed.protos import messaging_pb2 as mq
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweed.protos.schema_pb2 import RecordType, Topic
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.publishing.publish_stream import PublishStream

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


CALL_S = 10.0
PARTITION_S = 0.04  # for each partition that is made: three times what 2,520 of them took on a small machine
PATIENCE_S = 10.0  # restarted brokers do not know for some seconds whom to ask
_CONFIGURE_S = 25.0  # restarted servers of SeaweedFS forget all brokers once more within half a minute
FLUSHED_S = 15.0  # three times a broker's default flush interval
_DROPPED_S = 1.0  # ten times what it takes, however seldom brokers flush
_FETCHED_MESSAGES, _FETCHED_BYTES = 10_000, 4 << 20  # at most with one call; no broker returns more messages
GROUP = "kgateway"  # messages are fetched for all consumers of Kafka together
_COUNTS = range(1, 2521)  # slots of a ring, of which each partition needs one


class BrokerRpc:
    """
    A client of brokers: it asks any of them for what all know, and the leader of a partition for what is in it. Brokers
    write its name, as that of a consumer, into detailed logs.
    """

    def __init__(self, seaweed: SeaweedCluster, namespace: str, name: str = GROUP) -> None:
        self._seaweed = seaweed
        self._namespace = namespace
        self._name = name

    def topic(self, name: str) -> Topic:
        return Topic(namespace=self._namespace, name=name)

    async def configure(
        self, name: str, partition_count: int, record_type: RecordType | None
    ) -> Sequence[BrokerPartitionAssignment]:
        """
        Make the topic, or give it another number of partitions: all of them are new then.
        """
        return await self.configure_like(
            mq.ConfigureTopicResponse(message_record_type=record_type), name, partition_count
        )

    async def configure_like(
        self, conf: mq.ConfigureTopicResponse, name: str, partition_count: int
    ) -> Sequence[BrokerPartitionAssignment]:
        """
        Configure a topic with the columns and all else that this `topic.conf` has.
        """
        if partition_count not in _COUNTS:  # a broker that is asked for none ends
            raise ValueError(f"a topic has 1 to 2520 partitions, not {partition_count}")
        request = mq.ConfigureTopicRequest(
            topic=self.topic(name),
            partition_count=partition_count,
            retention=conf.retention if conf.HasField("retention") else None,
            message_record_type=conf.message_record_type if conf.HasField("message_record_type") else None,
            key_columns=conf.key_columns,
            schema_format=conf.schema_format,
        )
        seconds = CALL_S + PARTITION_S * partition_count
        answer = await self._seaweed.retries.run(lambda _: self._ask(CONFIGURE, request, seconds), _CONFIGURE_S)
        return _by_range(answer.broker_partition_assignments)

    async def assignments(self, name: str) -> Sequence[BrokerPartitionAssignment]:
        """
        The partitions of a topic in their order, with their leaders; UNAVAILABLE while one has none.

        This asks what no broker caches: to look up a leader too early after a broker has come back would let that
        broker refuse the partition for half a minute.
        """
        return await self._seaweed.retries.run(lambda _: self._assignments(name), PATIENCE_S)

    async def _assignments(self, name: str) -> Sequence[BrokerPartitionAssignment]:
        request = mq.GetTopicConfigurationRequest(topic=self.topic(name))
        found = await self._ask(CONFIGURATION, request)
        if not all(each.leader_broker for each in found.broker_partition_assignments):
            raise RpcError(Status.UNAVAILABLE, f"not every partition of {name} has a leader yet")
        return _by_range(found.broker_partition_assignments)

    async def next_offset(self, name: str, assignment: BrokerPartitionAssignment) -> int:
        """
        The offset that the next message of a partition gets.
        """
        request = mq.GetPartitionRangeInfoRequest(topic=self.topic(name), partition=assignment.partition)
        channel = self._seaweed.channel(assignment.leader_broker)
        found = await channel.call(RANGE, request, CALL_S)
        if found.error:
            raise RpcError(Status.UNAVAILABLE, found.error)
        return int(found.offset_range.high_water_mark)

    async def publishers(self, name: str) -> Sequence[mq.TopicPublisher]:
        found = await self._ask(PUBLISHERS, mq.GetTopicPublishersRequest(topic=self.topic(name)))
        return found.publishers

    async def fetch(self, name: str, assignment: BrokerPartitionAssignment, offset: int) -> Sequence[mq.DataMessage]:
        """
        The message at this offset of a partition that is published to, and some of those after it.
        """
        request = mq.FetchMessageRequest(
            topic=self.topic(name),
            partition=assignment.partition,
            start_offset=offset,
            max_messages=1,
            consumer_group=GROUP,
            consumer_id=self._name,
        )
        channel = self._seaweed.channel(assignment.leader_broker)
        return (await channel.call(FETCH, request, CALL_S)).messages

    async def fetch_from(
        self, name: str, assignment: BrokerPartitionAssignment, offset: int
    ) -> mq.FetchMessageResponse:
        """
        Messages of a partition from this offset on, as its broker counts.
        """
        request = mq.FetchMessageRequest(
            topic=self.topic(name),
            partition=assignment.partition,
            start_offset=offset,
            max_messages=_FETCHED_MESSAGES,
            max_bytes=_FETCHED_BYTES,
            consumer_group=GROUP,
            consumer_id=self._name,
        )
        response = await self._seaweed.channel(assignment.leader_broker).call(FETCH, request, CALL_S)
        if response.error:
            raise RpcError(Status.UNAVAILABLE, response.error)
        return response

    async def has_publisher(self, name: str, assignment: BrokerPartitionAssignment) -> bool:
        """
        Whether any program has a stream to the leader of a partition to publish by.
        """
        request = mq.GetTopicPublishersRequest(topic=self.topic(name))
        found = await self._seaweed.channel(assignment.leader_broker).call(PUBLISHERS, request, CALL_S)
        return any(each.partition == assignment.partition for each in found.publishers)

    async def publish(
        self, name: str, assignment: BrokerPartitionAssignment, publisher: PublishStream, client: str
    ) -> None:
        channel = self._seaweed.channel(assignment.leader_broker)

        def open_stream(received: Callable[[bytes], None], ended: Callable[[RpcError | None], None]) -> Stream:
            return channel.open(PUBLISH, received, ended)

        await publisher.open(open_stream, self.topic(name), assignment.partition, client)

    async def drop(self, name: str, assignments: Sequence[BrokerPartitionAssignment]) -> None:
        """
        Let the brokers drop these partitions from memory.
        """
        for leader in {each.leader_broker for each in assignments if each.leader_broker}:
            theirs = [
                BrokerPartitionAssignment(partition=each.partition, leader_broker=leader)
                for each in assignments
                if each.leader_broker == leader
            ]
            request = mq.AssignTopicPartitionsRequest(
                topic=self.topic(name), broker_partition_assignments=theirs, is_draining=True
            )
            await self._seaweed.channel(leader).call(ASSIGN, request, CALL_S)
        # They answer before they have done it, and would publish to what they drop if the topic were made again.
        await self._seaweed.retries.wait(_DROPPED_S)

    async def _ask(self, method: Method[RequestT, ResponseT], request: RequestT, seconds: float = CALL_S) -> ResponseT:
        """
        Ask the brokers, one after the other, until one answers.
        """
        error = RpcError(Status.UNAVAILABLE, "the masters know no broker of SeaweedMQ")
        for address in await self._seaweed.brokers():
            try:
                return await self._seaweed.channel(address).call(method, request, seconds)
            except RpcError as failed:
                if failed.status not in (Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED):
                    raise
                error = failed
        raise error


def assignment_to(
    folder: PartitionFolder, assignments: Iterable[BrokerPartitionAssignment]
) -> BrokerPartitionAssignment:
    """
    The assignment of the partition whose messages are in this folder; UNAVAILABLE if SeaweedMQ has recreated the
    partitions of the topic, and the folder gets no more messages.
    """
    for assignment in assignments:
        partition = assignment.partition
        found = RingRange(partition.range_start, partition.range_stop), partition.unix_time_ns
        if found == (folder.part, folder.unix_time_ns):
            return assignment
    raise RpcError(Status.UNAVAILABLE, f"another program has replaced the partition of {folder.path}")


def _by_range(assignments: Sequence[BrokerPartitionAssignment]) -> Sequence[BrokerPartitionAssignment]:
    return sorted(assignments, key=lambda each: each.partition.range_start)
