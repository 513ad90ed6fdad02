"""
What every broker does for administrators beside topics: the tests that each of them passes, beside those of
`behaviour`.
"""

import pytest

from kgateway.cluster.config_resource import broker
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import Topic
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import ONE
from tests.broker.altering import T, setting, without
from tests.broker.behaviour import Started, World, appended, batch, refusal, result

EVERY, OWN, OTHER = broker(""), broker(1), broker(2)


class Administering(Started):
    """
    Topics follow what is set for brokers, and partitions are measured.
    """

    def shown(self, world: World, name: str = "t") -> Topic:
        """
        The topic as it is now.
        """
        return world.broker.view().topics[name]

    def test_topics_follow(self, world: World) -> None:
        """
        What is set for this broker holds for its topics before what is set for all; what is set for others does not.
        """
        before, told = world.topic().config, list[int]()
        for resource, change in (
            (EVERY, setting(log_segment_bytes=2_000_000)),
            (OTHER, setting(log_segment_bytes=4_000_000)),
            (OWN, setting(log_segment_bytes=3_000_000)),
            (OWN, without("log.segment.bytes")),
            (EVERY, without("log.segment.bytes")),
        ):
            result(world.broker.change_config(resource, change))
            told.append(self.shown(world).config.segment_bytes)
        assert told == [2_000_000, 2_000_000, 3_000_000, 2_000_000, before.segment_bytes]
        assert self.shown(world).config == before

    def test_topics_that_have_their_own(self, world: World) -> None:
        """
        What a topic has set itself holds whatever is set for brokers.
        """
        world.topic()
        result(world.broker.change_config(EVERY, setting(log_retention_ms=5, log_roll_ms=6)))
        result(world.broker.change_config(T, setting(retention_ms=77)))
        result(world.broker.change_config(EVERY, setting(log_retention_ms=8)))
        config = self.shown(world).config
        assert (config.retention_ms, config.segment_ms) == (77, 6)
        result(world.broker.change_config(T, without("retention.ms")))
        assert self.shown(world).config.retention_ms == 8

    @pytest.mark.parametrize("first", ["topic", "config"])
    def test_partitions_follow(self, first: str, world: World) -> None:
        """
        Every partition has the topic of the view, be the topic made before or after.
        """
        if first == "topic":
            world.partition()
        result(world.broker.change_config(EVERY, setting(message_max_bytes=10)))
        partition = world.partition() if first == "config" else world.broker.partition(self.shown(world).id, 0)
        assert partition.topic == self.shown(world)
        error = refusal(lambda: partition.append(batch(), Origin.CLIENT))
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        result(world.broker.change_config(EVERY, without("message.max.bytes")))
        assert appended(partition, batch()).base_offset == 0

    def test_one_view(self, world: World) -> None:
        """
        Whoever looks sees what is set and the topics that follow it at once.
        """
        for name in ("t", "u"):
            world.topic(name)
        seen = []
        world.broker.watch(lambda: seen.append(world.broker.view()))
        result(world.broker.change_config(EVERY, setting(log_roll_ms=77)))
        [view] = seen
        assert [topic.config.segment_ms for topic in view.topics.values()] == [77, 77]
        assert view.topics_by_id == {topic.id: topic for topic in view.topics.values()}
        assert view.overrides_of(EVERY) == {"log.roll.ms": "77"}

    def test_measured(self, world: World) -> None:
        """
        The sizes of partitions that are here are told, of others nothing is.
        """
        topic = world.topic(partition_count=2)
        small = result(world.broker.measure([(topic.id, 0), (ONE, 0)])).sizes
        assert {*small} <= {(topic.id, 0)}
        for _ in range(3):
            appended(world.broker.partition(topic.id, 0), batch(5))
        self.settle_sizes(world, topic)
        sizes = result(world.broker.measure([(topic.id, 0), (topic.id, 1)])).sizes
        assert sizes[topic.id, 0] >= 3 * batch(5).header.size
        assert sizes[topic.id, 1] == 0
        assert world.broker.log_dir

    def settle_sizes(self, world: World, topic: Topic) -> None:
        """
        Wait until what was appended counts; with most brokers it does at once.
        """
