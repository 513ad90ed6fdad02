"""
A gateway ends while it creates a topic, and another one finds what is left.
"""

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.protos.schema_pb2 import Field, RecordType, ScalarType, Type
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from kgateway.broker.seaweedmq.topics.catalog import TopicCatalog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import appended, batch, refusal, result
from tests.broker.seaweed.real_reactor import wait
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.gateways import Start, running
from tests.broker.seaweedmq.test_external_changes import seen
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
    The gateway ends at this point.
    """


@pytest.fixture
def half_made(
    seaweed: SeaweedCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[type, str, str], None]:
    """
    Create the topic `t` until this method is called.
    """

    def made(owner: type, method: str, form: str) -> None:
        async def killed(*_: Any) -> None:
            raise Killed

        overrides = {**config(form).overrides, "retention.ms": "1000"}
        new = NewTopic("t", 2, TopicConfig.of(overrides))
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, killed)
            factory = Deferred.fromCoroutine(TopicCatalog(seaweed, namespace).create(ID, new, overrides))
            with pytest.raises(Killed):
                wait(factory)

    return made


def files(seaweed: SeaweedCluster, namespace: str) -> list[str]:
    """
    The files in the folders of the topic and of its namespace.
    """
    filer = wait(seaweed.filer())
    folders = f"/topics/{namespace}", f"/topics/{namespace}/t"
    return [entry.name for folder in folders for entry in wait(filer.all_entries(folder)) if entry.name[0] != "."]


@FORMS
def test_a_topic_that_seaweedmq_has_is_what_it_was_to_be(
    form: str, start: Start, half_made: Callable[..., None], seaweed: SeaweedCluster, namespace: str
) -> None:
    """
    It has its id, configs and form; another attempt to create it fails because it exists.
    """
    half_made(TopicCatalog, "store", form)
    looked = wait(Deferred.fromCoroutine(TopicCatalog(seaweed, namespace).read("t")))
    with running(start) as broker:
        topic = seen(broker, "t")
        assert (topic.id, len(topic.partitions)) == (ID, 2)
        assert (topic.config.seaweedmq_format, topic.config.retention_ms) == (form, 1000)
        assert looked
        assert (looked.stored.file.id, looked.stored.file.format.name) == (ID, form)
        error = refusal(lambda: broker.create_topic(NewTopic("t", 2, config(form))))
        assert error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert appended(broker.partition(topic.id, 1), batch(2)).base_offset == 0
        assert "kgateway-intent.json" not in files(seaweed, namespace)
    with running(start) as broker:
        assert seen(broker, "t").config == topic.config
    kept = wait(Deferred.fromCoroutine(TopicCatalog(seaweed, namespace).adopt("t")))
    assert kept
    assert not kept.file.is_foreign


def test_a_topic_that_seaweedmq_has_not_is_none(
    start: Start, half_made: Callable[..., None], seaweed: SeaweedCluster, namespace: str
) -> None:
    """
    Nothing of it is left, and a topic of that name can be created.
    """
    half_made(BrokerRpc, "configure_like", "batch")
    assert files(seaweed, namespace) == ["t", "kgateway-intent.json"]
    assert wait(Deferred.fromCoroutine(TopicCatalog(seaweed, namespace).read("t"))) is None
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
    Its columns differ from the intended ones.
    """
    half_made(BrokerRpc, "configure_like", "batch")
    ForeignTopic(cluster, COLUMNS, "t", namespace)
    with running(start) as broker:
        assert seen(broker, "t").config.seaweedmq_format == "record"
        assert seen(broker, "t").id != ID
