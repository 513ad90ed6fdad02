"""
The options of the source, with the names and meanings that they have in Spark's own Kafka source.

One table has them all. An unknown name is refused, and similar names are suggested: a misspelt option would otherwise
have no effect, and nobody would notice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from kgateway.client.connection import Address
from kgateway.spark.errors import WrongOption

T = TypeVar("T")

READ, STREAM, WRITE, ONCE = "a batch query", "a streaming query", "a writer", "exactly_once"
_BOTH = {READ, STREAM}
_OF_SPARK = {"checkpointlocation", "path", "queryname"}  # Spark itself may add them
_SECURITY = "kafka.security.protocol"


@dataclass(frozen=True, slots=True)
class Option:
    """
    An option, and the uses that have it.
    """

    name: str
    uses: frozenset[str]


def _options(uses: set[str], *names: str) -> dict[str, Option]:
    return {name.lower(): Option(name, frozenset(uses)) for name in names}


OPTIONS = {
    **_options(_BOTH, "subscribe", "subscribePattern", "assign"),
    **_options(_BOTH, "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp"),
    **_options(_BOTH, "startingOffsetsByTimestampStrategy"),
    **_options({READ}, "endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"),
    **_options({STREAM}, "maxOffsetsPerTrigger"),
    **_options(_BOTH, "minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "includeHeaders"),
    **_options(_BOTH, "kafka.isolation.level", "kafka.fetch.max.bytes", "kafkaConsumer.pollTimeoutMs"),
    **_options(_BOTH, "kgateway.log.folder", "kgateway.filer", "kgateway.filer.files"),
    **_options(_BOTH, "kgateway.http.authorization", "kgateway.seaweed.security"),
    **_options(_BOTH, "key.format", "key.schema", "value.format", "value.schema"),
    **_options(_BOTH, "mode", "columnNameOfCorruptRecord"),
    **_options({WRITE, ONCE}, "topic", "kafka.compression.type"),
    **_options({WRITE}, "kafka.acks"),
    **_options({ONCE}, "kafka.transaction.timeout.ms", "guardTopic"),
    **_options({READ, STREAM, WRITE, ONCE}, "kafka.bootstrap.servers", "kafka.request.timeout.ms", _SECURITY),
}
_ELSEWHERE = {
    "minoffsetspertrigger": "PySpark gives a source one limit; use maxOffsetsPerTrigger",
    "maxtriggerdelay": "it needs minOffsetsPerTrigger, which is not supported; use a trigger of the query",
    "groupidprefix": "this source reads without a consumer group",
    "kafka.transactional.id": "it is derived from the checkpoint of the query",
    "kafka.group.id": "this source reads without a consumer group; offsets are in the checkpoint",
    "kafka.auto.offset.reset": "set where to begin with startingOffsets",
    "kafka.enable.auto.commit": "offsets are in the checkpoint",
    "kafka.key.deserializer": "keys are bytes; use key.format, or cast them",
    "kafka.value.deserializer": "values are bytes; use value.format, or cast them",
    "kafka.key.serializer": "keys are strings or bytes",
    "kafka.value.serializer": "values are strings or bytes",
}


class Options:
    """
    The options of one use, checked.
    """

    def __init__(self, given: Mapping[str, str], use: str) -> None:
        self._given = {name.lower(): value for name, value in given.items() if name.lower() not in _OF_SPARK}
        for name in self._given:
            _check_known(name, use)
        if given.get("path"):
            raise WrongOption(f"load() and save() take no path here: name topics with options, not {given['path']!r}")
        security = self.text(_SECURITY)
        if security and security.upper() != "PLAINTEXT":
            raise WrongOption(
                f"{_SECURITY} is {security}: this source supports neither TLS nor a login yet, only PLAINTEXT"
            )

    def has(self, name: str) -> bool:
        return name.lower() in self._given

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name.lower(), default).strip()

    def parsed(self, name: str, parse: Callable[[str], T], wanted: str) -> T:
        """
        The parsed value; the error says what was expected.
        """
        text = self.text(name)
        try:
            return parse(text)
        except WrongOption:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise WrongOption(f"{name} is {text!r}; it must be {wanted}") from error

    def number(self, name: str, default: int, least: int = 1) -> int:
        def parse(text: str) -> int:
            number = int(text)
            if number < least:
                raise ValueError(number)
            return number

        return self.parsed(name, parse, f"a whole number of at least {least}") if self.has(name) else default

    def flag(self, name: str, default: bool) -> bool:
        values = {"true": True, "false": False}
        return self.parsed(name, lambda text: values[text.lower()], "true or false") if self.has(name) else default

    def choice(self, name: str, choices: Mapping[str, Any], default: str) -> Any:
        """
        The value of one of some words.
        """
        return self.parsed(name, lambda text: choices[text.lower() or default], f"one of {', '.join(choices)}")

    def addresses(self) -> tuple[Address, ...]:
        def parse(text: str) -> tuple[Address, ...]:
            return tuple(Address.parse(one) for one in text.split(",") if one.strip())

        return self.parsed("kafka.bootstrap.servers", parse, "HOST or HOST:PORT, or several separated by commas")


def _check_known(name: str, use: str) -> None:
    option = OPTIONS.get(name)
    if option is None:
        if name in _ELSEWHERE:
            raise WrongOption(f"there is no option {name} here: {_ELSEWHERE[name]}")
        near = [one.name for key, one in OPTIONS.items() if key.endswith(f".{name}")]
        near = near or [OPTIONS[one].name for one in get_close_matches(name, OPTIONS)]
        advice = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(known(use))}"
        raise WrongOption(f"there is no option {name}: {advice}")
    if use not in option.uses:
        raise WrongOption(f"{option.name} is not an option of {use}, but of {' and '.join(sorted(option.uses))}")


def known(use: str) -> list[str]:
    return [option.name for option in OPTIONS.values() if use in option.uses]
