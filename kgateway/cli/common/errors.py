"""
Failures of commands: a reason for the operator, an exit code, and a code for programs.
"""

import sys
from typing import TYPE_CHECKING, NamedTuple, Self

from kgateway.cli.common.colours import Colour, coloured
from kgateway.observe.printable import printable

if TYPE_CHECKING:
    from kgateway.wire.errors import KafkaError  # which not every command needs

FAILED, MISTAKE, INTERRUPTED = 1, 2, 130  # exit codes; the last one as shells know it
FAILURE, USAGE, UNREACHABLE = "FAILED", "USAGE", "UNREACHABLE"  # codes of what is no error of Kafka's


class Problem(NamedTuple):
    """
    A failure as programs see it. The code is the name of an error code of Kafka's, or one of those above.
    """

    code: str
    message: str

    @classmethod
    def of(cls, error: "KafkaError", message: str | None = None) -> Self:
        return cls(error.code.name, message or str(error))

    def for_json(self) -> dict[str, str]:
        """
        The fields, without the code at the beginning of the message, where people read it.
        """
        return {"code": self.code, "message": self.message.removeprefix(f"{self.code}: ")}


class CommandError(Exception):
    """
    A command failed; the reason is printed on stderr and, with --json, on stdout too.
    """

    def __init__(self, reason: str, exit_code: int = FAILED, code: str | None = None) -> None:
        super().__init__(reason)
        self.exit_code = exit_code
        self.problem = Problem(code or (USAGE if exit_code == MISTAKE else FAILURE), reason)


class UsageError(CommandError):
    """
    A mistake in the command line.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason, MISTAKE)

    def __str__(self) -> str:
        return f"error: {self.problem.message}"


class UnknownTopicOrPartition(CommandError):
    """
    A topic or partition that is named does not exist.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code="UNKNOWN_TOPIC_OR_PARTITION")


def print_error(command: str, reason: str) -> None:
    print(coloured(f"{command}:", Colour.RED, sys.stderr), printable(reason), file=sys.stderr)


class Unwritable(Exception):
    """
    Stdout cannot be written.
    """
