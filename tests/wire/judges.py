"""
Which codec judges which message: kio, kafka-python's JSON tables, its old tables, or else stored bytes of Kafka.
"""

from typing import Any

from kgateway.wire.schema import Message
from tests.wire.cases import EVERY_VERSION
from tests.wire.kafka_python_values import containers, tuples
from tests.wire.kio_values import kio_class

# Defects of the other side, which cannot be compared.
THEIR_BUGS = {
    ("DescribeLogDirsRequest", 0): "its partitions are one number there; Kafka has a list of them",
}


def container(message: type[Message], version: int) -> Any:
    """
    kafka-python's class made from JSON, in the versions that kio has too: its JSON is today's Kafka's.
    """
    return containers().get(message.__name__) if kio_class(message, version) else None


def old_table(message: type[Message], version: int) -> Any:
    """
    kafka-python's handwritten class, in versions that kio has dropped.
    """
    name = (message.__name__, version)
    return None if kio_class(message, version) or name in THEIR_BUGS else tuples().get(name)


UNJUDGED = [pair for pair in EVERY_VERSION if kio_class(*pair) is None and old_table(*pair) is None]
