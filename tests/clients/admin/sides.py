"""
Two servers that get the same requests: Apache Kafka and a gateway, each with topics of the same names.

Responses are made comparable: ids that each server generates, ports, folders and the order of unordered lists do not
count. Where Kafka explains an error only by the standard text of its code, or not at all, the gateway may say more.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.kafka.servers import Apache, Gateway
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.records.builder import BatchBuilder
from kgateway.wire.schema import Message, Struct
from kgateway.wire.uuids import ZERO, Uuid
from tests.faults.client import Client, produce_request, produced

TOPIC, GONE = "admin", "gone"  # a topic of two partitions with five records in the first, and a missing one
RECORDS = 5

_STANDING = (
    "This server does not host this topic-partition.",
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details.",
)
_ORDERED = ("synonyms",)  # lists whose order matters
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOTHING = (None, "", "NONE")


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    bootstrap: str
    data: Path
    client: Client

    def ask(self, request: Message, version: int) -> Any:
        """
        The response to a request, as it was received.
        """
        return self.client.ask(request, version)

    def plain(self, text: str) -> str:
        """
        The output of a tool without what each server generates.
        """
        text = text.replace(str(self.data), "DATA").replace(self.bootstrap, "BOOTSTRAP")
        return re.sub(r"(?<![\w-])[\w-]{22}(?![\w-])", "ID", text)


@contextmanager
def both(folder: Path) -> Iterator[tuple[Side, Side]]:
    """
    Start Kafka and the gateway for a `with` block.
    """
    gateway = Gateway(folder / "kgateway", "log:{data}")
    servers = Apache(folder / "kafka"), gateway
    with ExitStack() as stack:
        sides = []
        for server in servers:
            stack.callback(server.stop)
            server.start()
            client = stack.enter_context(Client(server.port))
            sides.append(Side(server.name, server.bootstrap, server.data, client))
            _create_topics(client)
        yield sides[0], sides[1]
        assert "Traceback" not in gateway.log, gateway.log


def _create_topics(client: Client) -> None:
    new = CreateTopicsRequest.Topic(name=TOPIC, num_partitions=2, replication_factor=1, assignments=[], configs=[])
    client.ask(CreateTopicsRequest(topics=[new], timeout_ms=30_000), 7)
    builder = BatchBuilder()
    for number in range(RECORDS):
        builder.append(None, b"value", timestamp=time.time_ns() // 1_000_000 + number)
    while produced(client.ask(produce_request(TOPIC, builder.build()), 9)).error_code:
        pass  # Kafka's broker learns of the topic a moment after its controller


def comparable(found: Any) -> Any:
    """
    A response, or a part of one, that can be compared.
    """
    if isinstance(found, Struct):
        return _object({field.name: getattr(found, field.name) for field in type(found).__fields__})
    if isinstance(found, Mapping):
        return _object(found)
    if isinstance(found, Uuid):
        return "no id" if found == ZERO else "an id"
    if isinstance(found, str):
        return "an id" if _UUID.fullmatch(found) else found
    if isinstance(found, Sequence) and not isinstance(found, bytes):
        return sorted((comparable(item) for item in found), key=repr)
    return found


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    shown = {
        name: [comparable(item) for item in value] if name in _ORDERED else comparable(value)
        for name, value in fields.items()
    }
    if shown.get("error_message") in _NOTHING or not shown.get("error_code", 1):
        shown.pop("error_message", None)
    return shown


def same(kafka: Any, gateway: Any) -> bool:
    """
    Whether two responses agree.
    """
    if isinstance(kafka, dict) and isinstance(gateway, dict):
        silent = kafka.get("error_message") in (None, *_STANDING)
        left, right = (
            {k: v for k, v in side.items() if k != "error_message" or not silent} for side in (kafka, gateway)
        )
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(kafka, list) and isinstance(gateway, list):
        return len(kafka) == len(gateway) and all(map(same, kafka, gateway))
    return bool(kafka == gateway)
