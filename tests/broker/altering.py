"""
What every broker does with the configs of topics: the tests that each of them passes, beside those of `behaviour`.
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
    refusal,
    result,
    stored,
)

T = topic("t")


def setting(**values: object) -> Change:
    """
    The change that sets these.
    """
    return lambda before: {**before, **{name.replace("_", "."): str(value) for name, value in values.items()}}


def without(name: str) -> Change:
    """
    The change that sets this no more.
    """
    return lambda before: {other: value for other, value in before.items() if other != name}


class Altering(Started):
    """
    Configs of topics change, and hold at once.
    """

    def alter(self, world: World, change: Change, name: str = "t") -> Topic:
        """
        Change a config; the topic as it is then.
        """
        result(world.broker.change_config(topic(name), change))
        return world.broker.view().topics[name]

    def settle(self, partition: IPartition) -> None:
        """
        Wait until retention knows of all records; most brokers do at once.
        """

    def test_what_is_set_is_in_the_view(self, world: World) -> None:
        """
        The topic has what was set, changes add up, and all else of it stays; so do other resources.
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

    def test_partitions_know_it(self, world: World) -> None:
        """
        Every partition has the topic of the view, be it open, or opened later.
        """
        before = world.topic(partition_count=3)
        first = world.broker.partition(before.id, 0)
        after = self.alter(world, setting(retention_ms=77))
        assert first.topic == after
        assert [world.broker.partition(before.id, index).topic for index in range(3)] == [after] * 3

    def test_what_is_set_no_more_has_its_default(self, world: World) -> None:
        """
        As though it had never been set.
        """
        before = world.topic()
        self.alter(world, setting(retention_ms=77, segment_ms=88))
        after = self.alter(world, without("retention.ms"))
        assert (after.config.retention_ms, after.config.segment_ms) == (before.config.retention_ms, 88)
        assert "retention.ms" not in after.config.overrides

    def test_views_do_not_change(self, world: World) -> None:
        """
        Who holds a view is not surprised, nor can what is set be changed in it.
        """
        world.topic()
        view, given = world.broker.view(), {"retention.ms": "77"}
        after = self.alter(world, lambda before: given | dict(before))
        given["retention.ms"] = "1"
        assert "retention.ms" not in view.topics["t"].config.overrides
        assert after.config.overrides["retention.ms"] == "77"
        with pytest.raises(TypeError):
            after.config.overrides["retention.ms"] = "1"  # type: ignore[index]  # that is what is asked

    def test_nothing_new_is_no_news(self, world: World) -> None:
        """
        Where a change changes nothing there is no new view, and no listener is called.
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

    def test_sizes_are_checked_at_once(self, world: World) -> None:
        """
        The next batch must be as small as the topic now wants it.
        """
        partition = world.partition()
        appended(partition, batch())
        self.alter(world, setting(max_message_bytes=10))
        error = refusal(lambda: partition.append(batch(), Origin.CLIENT))
        assert error.code is ErrorCode.MESSAGE_TOO_LARGE
        self.alter(world, without("max.message.bytes"))
        assert appended(partition, batch()).base_offset == 1

    def test_times_are_given_at_once(self, world: World) -> None:
        """
        The next batch gets its time from the clock that the topic now names; those before keep theirs.
        """
        partition = world.partition()
        world.now_ms += 5
        appended(partition, batch())
        self.alter(world, setting(message_timestamp_type="LogAppendTime"))
        assert appended(partition, batch())[:2] == (1, START_MS + 5)
        self.alter(world, without("message.timestamp.type"))
        assert appended(partition, batch())[:2] == (2, -1)
        headers = [found.header for offset in range(3) for found in stored(fetched(partition, offset))[:1]]
        create, append = TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME
        assert [header.timestamp_type for header in headers] == [create, append, create]
        assert [header.max_timestamp for header in headers] == [START_MS, START_MS + 5, START_MS]

    def test_retention_is_that_of_now(self, world: World) -> None:
        """
        The next round keeps what the topic now keeps.
        """
        partition = world.partition()
        appended(partition, batch())
        self.settle(partition)
        world.now_ms += 1_000
        result(partition.expire())
        assert partition.log_start == 0
        self.alter(world, setting(retention_ms=999))
        result(partition.expire())
        assert partition.log_start == 1

    def test_changes_come_one_after_the_other(self, world: World) -> None:
        """
        Each is given what the one before has made, however many there are at once; topics do not wait for each other.
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

    def test_refused_changes(self, world: World) -> None:
        """
        A change may refuse, and then nothing has changed; the next one is made.
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
    def test_configs_that_cannot_be(self, values: dict[str, Any], world: World) -> None:
        """
        A topic has no config that a new one could not have, and keeps what is decided when it is made.
        """
        world.topic()
        before = world.broker.view()
        error = refusal(lambda: world.broker.change_config(T, setting(segment_ms=1, **values)))
        assert error.code is ErrorCode.INVALID_CONFIG
        assert world.broker.view() is before

    @pytest.mark.parametrize("made", [True, False])
    def test_topics_that_are_not_there(self, made: bool, world: World) -> None:
        """
        No topic comes to be by being configured.
        """
        if made:
            result(world.broker.delete_topic(world.topic().id))
        before = world.broker.view()
        error = refusal(lambda: world.broker.change_config(T, setting(retention_ms=77)))
        assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.broker.view() is before

    def test_the_next_topic_of_the_name(self, world: World) -> None:
        """
        It has nothing of what was set for the one before it.
        """
        first = world.topic()
        self.alter(world, setting(retention_ms=77))
        result(world.broker.delete_topic(first.id))
        assert world.topic().config == first.config
        assert self.alter(world, setting(segment_ms=88)).config.retention_ms == first.config.retention_ms

    def test_topics_that_grow(self, world: World) -> None:
        """
        A topic keeps its config when it grows, and later changes are those of its new partitions, too.
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

    def test_internal_topics(self, world: World) -> None:
        """
        A coordinator can write no more at once than its topic now takes.
        """
        log = world.state_log()
        self.alter(world, setting(max_message_bytes=7), "__consumer_offsets")
        wrong = refusal(lambda: log.append([(b"key", b"value")]))
        assert wrong.code is ErrorCode.MESSAGE_TOO_LARGE
        after = self.alter(world, without("max.message.bytes"), "__consumer_offsets")
        assert after.internal
        noted(log, [(b"key", b"value")])
