"""
The clients that copy, and their commands.

The test of a missing client fails: Kafka's own needs KAFKA_JARS and MEMBER_CLASSES, franz-go its program on the path,
aiokafka its package.
"""

import sys
from collections.abc import Sequence

from tests.clients.groups.kinds import java_command

KINDS = ("librdkafka", "aiokafka", "go", "java")


def command(kind: str) -> Sequence[str]:
    """
    The command of a copier, without its last argument, the settings.
    """
    match kind:
        case "go":
            return ["franz-go-client", "copy"]
        case "java":
            return java_command("Copier")
        case python:
            return [sys.executable, "-m", f"tests.clients.transactions.workers.{python}_worker"]
