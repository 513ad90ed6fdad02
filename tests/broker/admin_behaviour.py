"""
Tests of broker configs and partition sizes that every broker passes.
"""

import pytest

from kgateway.cluster.config_resource import broker
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import Topic
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import ONE
from tests.broker.behaviour import Started, World, appended, batch, refusal, result
from tests.broker.config_behaviour import T, setting, without

EVERY, OWN, OTHER = broker(""), broker(1), broker(2)


class Administering(Started):
    """
    Topics inherit broker configs, and partition sizes are measured.
    """

    def shown(self, world: World, name: str = "t") -> Topic:
        return world.broker.view().topics[name]

    def test_topics_inherit_broker_configs(self, world: World) -> None:
        """
        A config of this broker beats the default for all brokers; another broker's config has no effect.
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

    def test_topic_configs_beat_broker_configs(self, world: World) -> None:
        world.topic()
        result(world.broker.change_config(EVERY, setting(log_retention_ms=5, log_roll_ms=6)))
        result(world.broker.change_config(T, setting(retention_ms=77)))
        result(world.broker.change_config(EVERY, setting(log_retention_ms=8)))
        config = self.shown(world).config
        assert (config.retention_ms, config.segment_ms) == (77, 6)
        result(world.broker.change_config(T, without("retention.ms")))
        assert self.shown(world).config.retention_ms == 8

    @pytest.mark.parametrize("first", ["topic", "config"])
    def test_partitions_have_the_topic_of_the_view(self, first: str, world: World) -> None:
        """
        It makes no difference whether the topic or the config was set first.
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

    def test_a_view_has_the_config_and_its_effect_together(self, world: World) -> None:
        """
        No view shows a broker config without the topics that inherit it.
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

    def test_sizes_are_reported_for_local_partitions_only(self, world: World) -> None:
        topic = world.topic(partition_count=2)
        small = result(world.broker.measure([PartitionId(topic.id, 0), PartitionId(ONE, 0)])).sizes
        assert {*small} <= {PartitionId(topic.id, 0)}
        for _ in range(3):
            appended(world.broker.partition(topic.id, 0), batch(5))
        self.settle_sizes(world, topic)
        sizes = result(world.broker.measure([PartitionId(topic.id, 0), PartitionId(topic.id, 1)])).sizes
        assert sizes[PartitionId(topic.id, 0)] >= 3 * batch(5).header.size
        assert sizes[PartitionId(topic.id, 1)] == 0
        assert world.broker.log_dir

    def settle_sizes(self, world: World, topic: Topic) -> None:
        """
        Wait until appended bytes count; most brokers count them at once.
        """
