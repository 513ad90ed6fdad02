"""
The log of the process as Kafka's clients see and change it: one logger, `root`, with a level in Kafka's words.
"""

from typing import Protocol

from kgateway.cluster.config_resource import Overrides
from kgateway.cluster.config_rows import brief
from kgateway.context import GatewayParts
from kgateway.wire.errors import ErrorCode, KafkaError

ROOT = "root"

_LEVELS = {"DEBUG": "debug", "ERROR": "error", "FATAL": "critical", "INFO": "info", "TRACE": "debug", "WARN": "warn"}
_WORDS = {level: word for word, level in _LEVELS.items() if word != "TRACE"}


class Levels(Protocol):
    """
    The part of `kgateway.observe.levels` that is used here.
    """

    @property
    def level(self) -> str: ...

    def set(self, level: str) -> None: ...


class ProcessLog:
    """
    The log levels of the process. A gateway embedded in another program has none, because the log is that of the
    program.
    """

    def __init__(self, gateway: GatewayParts) -> None:
        self.levels: Levels | None = None

    def described(self) -> dict[str, str]:
        return {ROOT: _WORDS[self._levels().level]}

    def check_name(self, name: str) -> None:
        self._levels()
        if name != ROOT:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {brief(name)} does not exist!")

    def check(self, wanted: Overrides) -> None:
        if ROOT not in wanted:
            reason = "Removing the log level of the root logger is not allowed"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        if wanted[ROOT] not in _LEVELS:
            wrong = f"Cannot set the log level of {ROOT} to {brief(wanted[ROOT])} as it is not a supported log level."
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{wrong} Valid log levels are {', '.join(_LEVELS)}")

    def set(self, wanted: Overrides) -> None:
        self.check(wanted)
        self._levels().set(_LEVELS[wanted[ROOT]])

    def _levels(self) -> Levels:
        if self.levels is None:
            reason = "this gateway is part of another program, which sets its own log levels"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        return self.levels
