"""
Topics created and deleted during crashes: an acknowledged change survives them.

A change whose response was not seen may have been made or not, but not in part; the restarted server shows which, and
keeps to it.
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.delete_topics import DeleteTopicsRequest
from kgateway.messages.describe_configs import DescribeConfigsRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.records.batch import batches
from kgateway.records.record import records
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import ZERO, Uuid
from tests.faults.background import ServerPoller
from tests.faults.client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Client,
    batch_of,
    fetch_request,
    produce_request,
    produced,
)

_NAMES = [f"passing-{number}" for number in range(6)]
_PAUSE_S = 0.02
_CREATE_VERSION, _DELETE_VERSION, _METADATA_VERSION, _CONFIGS_VERSION = 7, 5, 12, 4
_TOPIC_RESOURCE = 2
_NOT_YET = ErrorCode.NOT_LEADER_OR_FOLLOWER
_ABSENT = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Shape(NamedTuple):
    """
    A topic as requested.
    """

    partitions: int
    retention_ms: int
    id: Uuid = ZERO  # where it is known


class Topics(ServerPoller):
    """
    Creates and deletes topics, and checks all of them whenever the server is back.
    """

    def __init__(self, port: int, random: Random) -> None:
        self.faults: list[str] = []
        self.changes = self.checks = 0
        super().__init__(port, _PAUSE_S)
        self._random = random
        self._known: dict[str, Shape | None] = dict.fromkeys(_NAMES)
        self._unsure: tuple[str, Shape | None] | None = None  # the request without a response
        self._values: dict[str, list[bytes]] = {}  # in partition 0; the last may be unacknowledged
        self._answered: dict[str, int] = {}  # the number of acknowledged ones

    def _greet(self, client: Client) -> None:
        self.check(client)

    def _fail(self, failure: BaseException) -> None:
        self.faults.append(f"changing topics failed: {failure!r}")

    def check(self, client: Client) -> None:
        """
        Check that all topics are as acknowledged.
        """
        found = self._found(client)
        if self._unsure:
            name, shape = self._unsure
            self._unsure = None
            if not _same(self._known[name], found[name]):
                self._forget(name)
                self._known[name] = shape
        for name, shape in self._known.items():
            if not _same(shape, found[name]):
                self.faults.append(f"topic {name} was {shape}, and is {found[name]}")
            self._known[name] = found[name]
            if found[name]:
                self.faults += self._wrong_records(client, name)
        self.checks += 1

    def _found(self, client: Client) -> Mapping[str, Shape | None]:
        asked = [MetadataRequest.Topic(topic_id=ZERO, name=name) for name in _NAMES]
        told = client.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), _METADATA_VERSION).topics
        there = [topic for topic in told if topic.error_code not in _ABSENT]
        retention = self._retention(client, [topic.name for topic in there])
        shapes = {topic.name: Shape(len(topic.partitions), retention[topic.name], topic.topic_id) for topic in there}
        return {name: shapes.get(name) for name in _NAMES}

    def _retention(self, client: Client, names: list[str]) -> dict[str, int]:
        resource = DescribeConfigsRequest.Resource
        asked = [
            resource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=["retention.ms"])
            for name in names
        ]
        told = client.ask(DescribeConfigsRequest(resources=asked), _CONFIGS_VERSION).results
        return {result.resource_name: int(result.configs[0].value) for result in told}

    def _wrong_records(self, client: Client, name: str) -> Iterator[str]:
        """
        Report records that should be deleted with a topic, and missing ones of a topic that was not deleted.
        """
        answer = self._ready(lambda: _read(client, name))
        found = [record.value for batch in batches(answer.records or b"") for record in records(batch)]
        values = self._values.get(name, [])
        if found != values[: len(found)] or len(found) < self._answered.get(name, 0):
            yield f"topic {name} has {found}, and was sent {values}, of which {self._answered.get(name, 0)} were sure"
        self._values[name] = values[: len(found)]
        self._answered[name] = len(found)

    def _ready(self, ask: Any) -> Any:
        while True:
            answer = ask()
            if answer.error_code != _NOT_YET:
                return answer
            self._stopping.wait(_PAUSE_S)

    def _ask(self, client: Client) -> None:
        name = self._random.choice(_NAMES)
        if self._known[name] is None:
            self._create(client, name)
        elif self._random.random() < 0.5:
            self._delete(client, name)
        else:
            self._produce(client, name)
        self.changes += 1

    def _create(self, client: Client, name: str) -> None:
        shape = Shape(self._random.randint(1, 3), self._random.randrange(1 << 40))
        topic = CreateTopicsRequest.Topic(
            name=name,
            num_partitions=shape.partitions,
            replication_factor=1,
            assignments=[],
            configs=[CreateTopicsRequest.Topic.Config(name="retention.ms", value=str(shape.retention_ms))],
        )
        self._unsure = name, shape
        [told] = client.ask(CreateTopicsRequest(topics=[topic]), _CREATE_VERSION).topics
        self._answer(name, shape._replace(id=told.topic_id), told.error_code)

    def _delete(self, client: Client, name: str) -> None:
        self._unsure = name, None
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
        [told] = client.ask(request, _DELETE_VERSION).responses
        self._answer(name, None, told.error_code)

    def _answer(self, name: str, shape: Shape | None, error_code: int) -> None:
        self._unsure = None
        if error_code:
            self.faults.append(f"topic {name} cannot become {shape}: {ErrorCode(error_code).name}")
            return
        self._forget(name)
        self._known[name] = shape

    def _forget(self, name: str) -> None:
        self._values.pop(name, None)
        self._answered.pop(name, None)

    def _produce(self, client: Client, name: str) -> None:
        shape = self._known[name]
        value = f"{name} {shape.id if shape else None} {self._random.random()}".encode()
        self._values.setdefault(name, []).append(value)
        request = produce_request(name, batch_of(value))
        told = self._ready(lambda: produced(client.ask(request, PRODUCE_VERSION)))
        if told.error_code:
            self.faults.append(f"a record for topic {name} is answered with {ErrorCode(told.error_code).name}")
        self._answered[name] = len(self._values[name])


def _same(expected: Shape | None, found: Shape | None) -> bool:
    if expected is None or found is None:
        return expected is found
    return expected[:2] == found[:2] and expected.id in {ZERO, found.id}


def _read(client: Client, name: str) -> Any:
    [told] = client.ask(fetch_request(name), FETCH_VERSION).responses[0].partitions
    return told
