"""
The operator, who creates topics, lets them grow, alters their configs, deletes them, and adds producers.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import topic as resource
from kgateway.cluster.view import NewTopic, Topic
from kgateway.interfaces import IBroker
from tests.broker.log.power_clients import Batches, Clients, Judge, Producer
from tests.broker.log.power_log import ExpectedLog
from tests.broker.log.power_topics import ExpectedCluster, ExpectedTopic, expires

Configure = Callable[[dict[str, str]], TopicConfig]

_NAMES = ("a", "b", "c")  # few, so that the remains of one topic are in the way of the next


class Operator:
    """
    Changes one topic after the other, and judges the answers.
    """

    def __init__(
        self, chance: Random, cluster: ExpectedCluster, judge: Judge, configure: Configure, batches: Batches
    ) -> None:
        self._chance = chance
        self._cluster = cluster
        self._judge = judge
        self._configure = configure
        self._batches = batches

    def change(self, broker: IBroker) -> None:
        name = self._chance.choice(_NAMES)
        topic = self._cluster.topics.get(name)
        if topic is None:
            self._create(broker, name)
        elif topic.is_usable and topic.id:
            changes = [] if topic.is_configured else [self._grow, self._delete, self._alter]
            self._chance.choice([self._give_producer, self._give_producer, *changes])(broker, topic)

    def _create(self, broker: IBroker, name: str) -> None:
        overrides = self._overrides()
        config, count = self._configure(overrides), self._chance.randint(1, 3)

        def clients(index: int) -> Clients:
            log = ExpectedLog(f"{name}-{index}", fsync=config.acks_fsync, expires=expires(config))
            return Clients(log, self._batches, self._judge)

        topic = self._cluster.topics[name] = ExpectedTopic(name, [config], {count}, clients, is_changing=True)

        def created(found: Topic) -> None:
            topic.confirmed(found)
            if self._chance.random() < 0.7:
                self._give_producer(broker, topic)

        self._judge.tell(f"create {name} {count} {overrides}")
        self._ask(name, broker.create_topic(NewTopic(name, count, config)), created)

    def _overrides(self) -> dict[str, str]:
        overrides = {"segment.bytes": str(self._chance.choice((1000, 3000, 8000))), "index.interval.bytes": "500"}
        if self._chance.random() < 0.3:
            overrides["flush.messages"] = str(self._chance.choice((1, 5)))
        if self._chance.random() < 0.1:
            overrides["flush.ms"] = "500"
        if self._chance.random() < 0.5:
            overrides["file.delete.delay.ms"] = str(self._chance.choice((0, 1000)))
        if self._chance.random() < 0.5:
            overrides["kgateway.acks.fsync"] = "true"
        if self._chance.random() < 0.3:
            overrides |= self._retention()
        return overrides

    def _retention(self) -> dict[str, str]:
        return {
            "retention.ms": str(self._chance.choice((-1, 0, 500, 60_000))),
            "retention.bytes": str(self._chance.choice((-1, 0, 2000, 6000))),
        }

    def _grow(self, broker: IBroker, topic: ExpectedTopic) -> None:
        count = len(topic.clients) + 1
        topic.counts.add(count)
        topic.is_changing = True

        def grown(found: Topic) -> None:
            topic.counts = {count}
            topic.confirmed(found)

        assert topic.id
        self._judge.tell(f"let {topic.name} grow to {count}")
        self._ask(topic.name, broker.add_partitions(topic.id, count), grown)

    def _alter(self, broker: IBroker, topic: ExpectedTopic) -> None:
        """
        Alter a topic whose batches are sent and read meanwhile.
        """
        overrides = self._overrides()
        config = self._configure(overrides)
        topic.configs.append(config)
        topic.is_configured = True
        for clients in topic.clients:
            clients.log.expires |= expires(config)

        def altered(_: None) -> None:
            topic.is_configured = False
            topic.configs = [config]
            topic.check(broker.view().topics[topic.name])

        self._judge.tell(f"let {topic.name} have {overrides}")
        self._ask(topic.name, broker.change_config(resource(topic.name), lambda _: overrides), altered)

    def _delete(self, broker: IBroker, topic: ExpectedTopic) -> None:
        topic.is_changing = topic.may_be_missing = True

        def deleted(_: None) -> None:
            del self._cluster.topics[topic.name]

        assert topic.id
        self._judge.tell(f"delete {topic.name}")
        self._ask(topic.name, broker.delete_topic(topic.id), deleted)

    def _give_producer(self, broker: IBroker, topic: ExpectedTopic) -> None:
        def given(number: int) -> None:
            self._cluster.new_producer_id(number)
            self._chance.choice(topic.clients).producers.append(Producer(number))

        self._ask("a producer", broker.new_producer_id(), given)

    def _ask(self, what: str, answer: Deferred[Any], then: Callable[[Any], None]) -> None:
        def answered(result: Any) -> None:
            if self._judge.hears():
                self._judge.tell(f"{what}: done")
                then(result)

        def refused(failure: Failure) -> None:
            if self._judge.hears():
                self._judge.tell(f"{what}: {failure.value}")
                self._judge.excuse(failure.value)

        answer.addCallbacks(answered, refused).addErrback(self._judge.note)
