"""
A cluster that is asked again while servers are away or leaders move, for a time with an end.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kgateway.client.address import Address
from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.spark.failures import TopicGone, Unreadable
from kgateway.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")

NO_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
SETTLING_S = 5.0  # not every server knows at once what has changed
_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0


@dataclass(frozen=True, slots=True)
class Servers:
    """
    How a cluster is reached, and how it is read.
    """

    bootstrap: tuple[Address, ...]
    committed_only: bool = False
    answer_s: float = 30.0  # the longest that a server may take for an answer
    patience_s: float = 120.0  # how long it may take until something works again
    fetch_bytes: int = 8 << 20

    def __str__(self) -> str:
        return ",".join(map(str, self.bootstrap))


class PatientCluster:
    """
    A cluster to which the connections are made when they are needed, and again when they broke.
    """

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self._cluster: Cluster | None = None

    def settled(self, attempt: Callable[[Cluster], T], what: str) -> T:
        """
        The outcome of an attempt, which is made again for as long as it may work yet.
        """
        began, pause = time.monotonic(), _PAUSE_S
        while True:
            try:
                return attempt(self._connected())
            except Unanswered as error:
                self.close()
                problem: Exception = error
                reason, patience_s = str(error), self.servers.patience_s
            except KafkaError as error:
                if not error.code.retriable:
                    raise Unreadable(f"{what} cannot be had from {self.servers}: {_words(error)}") from error
                is_gone = error.code in NO_TOPIC
                problem, reason = error, _words(error)
                patience_s = min(SETTLING_S, self.servers.patience_s) if is_gone else self.servers.patience_s
            waited = time.monotonic() - began
            if waited + pause > patience_s:
                kind = TopicGone if isinstance(problem, KafkaError) and problem.code in NO_TOPIC else Unreadable
                raise kind(f"{what} cannot be had from {self.servers}, tried for {waited:.0f} s: {reason}") from problem
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE_MAX_S)

    def close(self) -> None:
        """
        End the connections.
        """
        if self._cluster:
            self._cluster.close()
            self._cluster = None

    def _connected(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self.servers.bootstrap, self.servers.answer_s)
        return self._cluster


def _words(error: KafkaError) -> str:
    return f"{error.message or error.code.meaning} ({error.code.name})"
