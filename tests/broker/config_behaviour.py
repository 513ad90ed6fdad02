"""
Tests of topic configs that every broker passes.
"""

from functools import partial
from typing import Any

import pytest
from twisted.internet.defer import gatherResults

from kgateway.cluster.config_resource import Change, Overrides, topic
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import TimestampType
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import (
    START_MS,
    Started,
    World,
    appended,
    batch,
    fetched,
    noted,
    placed,
    refusal,
    result,
    stored,
)

T = topic("t")


def setting(**values: object) -> Change:
    """
    A change that sets these configs.
    """
    return lambda before: {**before, **{name.replace("_", "."): str(value) for name, value in values.items()}}


def without(name: str) -> Change:
    """
    A change that removes this config.
    """
    return lambda before: {other: value for other, value in before.items() if other != name}


class Altering(Started):
    """
    Config changes of topics take effect at once.
    """

    def alter(self, world: World, change: Change, name: str = "t") -> Topic:
        """
        Apply a change and return the changed topic.
        """
        result(world.broker.change_config(topic(name), change))
        return world.broker.view().topics[name]

    def settle(self, partition: IPartition) -> None:
        """
        Wait until retention knows of all records; most brokers know at once.
        """

    def test_what_is_set_is_in_the_view(self, world: World) -> None:
        """
        Changes add up, and other configs and other resources are unchanged.
        """
        before, other = world.topic(partition_count=2), world.topic("u")
        epoch = world.broker.view().epoch
        self.alter(world, setting(retention_ms=77))
        after = self.alter(world, setting(segment_ms=88))
        assert (after.id, after.partitions, after.internal) == (before.id, before.partitions, False)
        assert (after.config.retention_ms, after.config.segment_ms) == (77, 88)
        view = world.broker.view()
        assert view.overrides_of(T) == {**before.config.overrides, "retention.ms": "77", "segment.ms": "88"}
        assert (view.topics["u"], view.topics_by_id[before.id], view.overrides) == (other, after, {})
        assert view.epoch > epoch

    def test_partitions_have_the_changed_topic(self, world: World) -> None:
        """
        Partitions that are open already and those opened later have it.
        """
        before = world.topic(partition_count=3)
        first = world.broker.partition(before.id, 0)
        after = self.alter(world, setting(retention_ms=77))
        assert first.topic == after
        assert [world.broker.partition(before.id, index).topic for index in range(3)] == [after] * 3

    def test_removed_configs_have_their_default(self, world: World) -> None:
        """
        The topic is as if they had never been set.
        """
        before = world.topic()
        self.alter(world, setting(retention_ms=77, segment_ms=88))
        after = self.alter(world, without("retention.ms"))
        assert (after.config.retention_ms, after.config.segment_ms) == (before.config.retention_ms, 88)
        assert "retention.ms" not in after.config.overrides

    def test_views_of_configs_do_not_change(self, world: World) -> None:
        """
        Neither an old view nor the overrides in it can be changed.
        """
        world.topic()
        view, given = world.broker.view(), {"retention.ms": "77"}
        after = self.alter(world, lambda before: given | dict(before))
        given["retention.ms"] = "1"
        assert "retention.ms" not in view.topics["t"].config.overrides
        assert after.config.overrides["retention.ms"] == "77"
        with pytest.raises(TypeError):
            after.config.overrides["retention.ms"] = "1"  # type: ignore[index]  # that is what is asked

    def test_a_change_without_effect_makes_no_view(self, world: World) -> None:
        """
        No listener is called either.
        """
        world.topic()
        self.alter(world, setting(retention_ms=77))
        view, called = world.broker.view(), list[str]()
        world.broker.watch(lambda: called.append("called"))
        for change in (setting(retention_ms=77), lambda before: before, without("segment.ms")):
            self.alter(world, change)
        assert world.broker.view() is view
        assert called == []
        self.alter(world, setting(retention_ms=78))
        assert called == ["called"]

    def test_max_message_bytes_takes_effect_at_once(self, world: World) -> None:
        partition = world.partition()
        appended(partition, batch())
        self.alter(world, setting(max_message_bytes=10))
        error = refusal(lambda: partition.append(batch(), Origin.CLIENT))
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        self.alter(world, without("max.message.bytes"))
        assert appended(partition, batch()).base_offset == 1

    def test_timestamp_type_takes_effect_at_once(self, world: World) -> None:
        """
        Only later batches get their time from the other clock.
        """
        partition = world.partition()
        world.now_ms += 5
        appended(partition, batch())
        self.alter(world, setting(message_timestamp_type="LogAppendTime"))
        assert placed(appended(partition, batch())) == (1, START_MS + 5, 0)
        self.alter(world, without("message.timestamp.type"))
        assert placed(appended(partition, batch())) == (2, -1, 0)
        headers = [found.header for offset in range(3) for found in stored(fetched(partition, offset))[:1]]
        create, append = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
        assert [header.timestamp_type for header in headers] == [create, append, create]
        assert [header.max_timestamp for header in headers] == [START_MS, START_MS + 5, START_MS]

    def test_retention_takes_effect_in_the_next_round(self, world: World) -> None:
        partition = world.partition()
        appended(partition, batch())
        self.settle(partition)
        world.now_ms += 1_000
        result(partition.expire())
        assert partition.log_start == 0
        self.alter(world, setting(retention_ms=999))
        result(partition.expire())
        assert partition.log_start == 1

    def test_concurrent_changes_are_applied_in_order(self, world: World) -> None:
        """
        Each change sees the result of the one before; different topics do not wait for each other.
        """
        world.topic()
        world.topic("u")

        def add(number: int, before: Overrides) -> Overrides:
            return {**before, "retention.ms": str(int(before.get("retention.ms", "0")) * 2 + number)}

        resources = [T, topic("u"), T, T, T]
        made = [world.broker.change_config(one, partial(add, number)) for number, one in enumerate(resources)]
        result(gatherResults(made))
        view = world.broker.view()
        assert [view.topics[name].config.retention_ms for name in ("t", "u")] == [2 * (2 * 2 + 3) + 4, 1]

    def test_refused_changes_of_topics_have_no_effect(self, world: World) -> None:
        """
        The next change is applied.
        """
        world.topic()
        before, wrong = world.broker.view(), KafkaError(ErrorCode.POLICY_VIOLATION, "no")

        def refuse(_: Overrides) -> Overrides:
            raise wrong

        refused, made = world.broker.change_config(T, refuse), world.broker.change_config(T, setting(retention_ms=77))
        assert refusal(lambda: refused) is wrong
        result(made)
        assert world.broker.view().topics["t"].config.retention_ms == 77
        assert "retention.ms" not in before.topics["t"].config.overrides

    @pytest.mark.parametrize(
        "values",
        [{"retention_ms": "x"}, {"retention": 1}, {"compression_type": "none"}, {"seaweedmq_format": "plain"}],
        ids=str,
    )
    def test_invalid_configs_are_refused(self, values: dict[str, Any], world: World) -> None:
        """
        A config that a new topic could not have is refused, and so is one that is fixed at creation.
        """
        world.topic()
        before = world.broker.view()
        error = refusal(lambda: world.broker.change_config(T, setting(segment_ms=1, **values)))
        assert error.code is ErrorCode.INVALID_CONFIG
        assert world.broker.view() is before

    @pytest.mark.parametrize("made", [True, False])
    def test_unknown_topics_are_not_created(self, made: bool, world: World) -> None:
        """
        Changing their config is refused.
        """
        if made:
            result(world.broker.delete_topic(world.topic().id))
        before = world.broker.view()
        error = refusal(lambda: world.broker.change_config(T, setting(retention_ms=77)))
        assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.broker.view() is before

    def test_a_recreated_topic_does_not_inherit_configs(self, world: World) -> None:
        first = world.topic()
        self.alter(world, setting(retention_ms=77))
        result(world.broker.delete_topic(first.id))
        assert world.topic().config == first.config
        assert self.alter(world, setting(segment_ms=88)).config.retention_ms == first.config.retention_ms

    def test_a_topic_that_grows_keeps_its_config(self, world: World) -> None:
        """
        Later changes apply to its new partitions too.
        """
        before = world.topic()
        self.alter(world, setting(retention_ms=77))
        grown = result(world.broker.add_partitions(before.id, 2))
        assert grown.config.retention_ms == 77
        after = self.alter(world, setting(max_message_bytes=10))
        assert (len(after.partitions), after.config.retention_ms) == (2, 77)
        for index in range(2):
            partition = world.broker.partition(before.id, index)
            assert partition.topic == after
            error = refusal(partial(partition.append, batch(), Origin.CLIENT))
            assert error.code is ErrorCode.MESSAGE_TOO_LARGE

    def test_configs_of_internal_topics_take_effect(self, world: World) -> None:
        """
        A coordinator's append is limited by the topic's max.message.bytes.
        """
        log = world.state_log()
        self.alter(world, setting(max_message_bytes=7), "__consumer_offsets")
        wrong = refusal(lambda: log.append([(b"key", b"value")]))
        assert wrong.code is ErrorCode.MESSAGE_TOO_LARGE
        after = self.alter(world, without("max.message.bytes"), "__consumer_offsets")
        assert after.internal
        noted(log, [(b"key", b"value")])
