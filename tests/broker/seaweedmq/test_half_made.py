"""
A gateway ends while it makes a topic; another one finds what there is of it.
"""

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweed.protos.schema_pb2 import Field, RecordType, ScalarType, Type
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.messaging import Messaging
from kgateway.broker.seaweedmq.topics import Topics
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import appended, batch, refusal, result
from tests.broker.seaweed.running import wait
from tests.broker.seaweedmq.published import Published
from tests.broker.seaweedmq.starting import Start, running
from tests.broker.seaweedmq.test_following import seen
from tests.broker.seaweedmq.test_restarts import FORMS, config

ID = Uuid(range(16))
COLUMNS = RecordType(
    fields=[
        Field(name="id", field_index=0, type=Type(scalar_type=ScalarType.INT64)),
        Field(name="city", field_index=1, type=Type(scalar_type=ScalarType.STRING)),
    ]
)


class Killed(Exception):
    """
    As far as this has come.
    """


@pytest.fixture
def half_made(seaweed: Seaweed, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str, str], None]:
    """
    Make the topic `t`, until this method of what makes it is called.
    """

    def made(owner: type, method: str, form: str) -> None:
        async def killed(*_: Any) -> None:
            raise Killed

        overrides = {**config(form).overrides, "retention.ms": "1000"}
        new = NewTopic("t", 2, TopicConfig.of(overrides))
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, killed)
            making = Deferred.fromCoroutine(Topics(seaweed, namespace).create(ID, new, overrides))
            with pytest.raises(Killed):
                wait(making)

    return made


def files(seaweed: Seaweed, namespace: str) -> list[str]:
    """
    What is in the folder of the topic, and of its namespace.
    """
    filer = wait(seaweed.filer())
    folders = f"/topics/{namespace}", f"/topics/{namespace}/t"
    return [entry.name for folder in folders for entry in wait(filer.all_entries(folder)) if entry.name[0] != "."]


@FORMS
def test_a_topic_that_seaweedmq_has_is_what_it_was_to_be(
    form: str, start: Start, half_made: Callable[..., None], seaweed: Seaweed, namespace: str
) -> None:
    """
    With its id, its configs and its form; who asks for it again is told that it is there.
    """
    half_made(Topics, "keep", form)
    looked = wait(Deferred.fromCoroutine(Topics(seaweed, namespace).seen("t")))
    with running(start) as broker:
        topic = seen(broker, "t")
        assert (topic.id, len(topic.partitions)) == (ID, 2)
        assert (topic.config.seaweedmq_format, topic.config.retention_ms) == (form, 1000)
        assert looked
        assert (looked.stored.kept.id, looked.stored.kept.form.name) == (ID, form)
        error = refusal(lambda: broker.create_topic(NewTopic("t", 2, config(form))))
        assert error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert appended(broker.partition(topic.id, 1), batch(2)).base_offset == 0
        assert "kgateway-intent.json" not in files(seaweed, namespace)
    with running(start) as broker:
        assert seen(broker, "t").config == topic.config
    kept = wait(Deferred.fromCoroutine(Topics(seaweed, namespace).find("t")))
    assert kept
    assert not kept.kept.found


def test_a_topic_that_seaweedmq_has_not_is_none(
    start: Start, half_made: Callable[..., None], seaweed: Seaweed, namespace: str
) -> None:
    """
    Nothing is left of it, and one of its name can be made.
    """
    half_made(Messaging, "configure_like", "batch")
    assert files(seaweed, namespace) == ["t", "kgateway-intent.json"]
    assert wait(Deferred.fromCoroutine(Topics(seaweed, namespace).seen("t"))) is None
    with running(start) as broker:
        assert seen(broker, "t") is None
        assert files(seaweed, namespace) == []
        topic = result(broker.create_topic(NewTopic("t", 3, config("record"))))
        assert (topic.id == ID, len(topic.partitions)) == (False, 3)
        assert sorted(files(seaweed, namespace)) == ["kgateway.json", "t", "topic.conf"]


def test_a_topic_that_others_made_in_its_place_is_theirs(
    start: Start, half_made: Callable[..., None], cluster: DevCluster, namespace: str
) -> None:
    """
    It has other columns than it was to have.
    """
    half_made(Messaging, "configure_like", "batch")
    Published(cluster, COLUMNS, "t", namespace)
    with running(start) as broker:
        assert seen(broker, "t").config.seaweedmq_format == "record"
        assert seen(broker, "t").id != ID
