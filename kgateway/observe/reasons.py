"""
Why clients were refused. Kafka's error codes have no explanation; here the rule and the state behind each one are
remembered for a while.

The memory is bounded twice: by the number of reasons, of which the oldest is dropped first, and by the length of the
texts that clients choose. A reason that comes again is counted and moves to the end. So a client that polls for what it
cannot get takes one entry, and displaces nothing else.
"""

from collections import OrderedDict
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol

from kgateway.wire.errors import ErrorCode

# Answers after which clients go on: a new member joins again with the id that it was given, and a client that describes
# a group of unknown type asks for a consumer group first.
_STEPS = {("JoinGroup", ErrorCode.MEMBER_ID_REQUIRED), ("ConsumerGroupDescribe", ErrorCode.GROUP_ID_NOT_FOUND)}
_TEXT_CHARS = 400  # a client may choose names of 32 KiB, and a thousand of them


class ReasonKind(StrEnum):
    REFUSED = "refused"  # answered with an error code
    FAILED = "failed"  # a handler raised what nobody foresaw
    MALFORMED = "malformed"  # the bytes are not Kafka's, and the connection was closed
    CLOSED = "closed"  # the connection was closed for another reason


class ClientInfo(Protocol):
    """
    What is known of the client; the session of a connection has it.
    """

    listener: str
    host: str
    principal: str
    software: str
    software_version: str


class Reason(NamedTuple):
    when_ms: int  # the last time
    since_ms: int  # the first time
    client_id: str
    host: str
    listener: str
    principal: str
    software: str
    software_version: str
    api: str  # empty if the connection was closed before one was known
    version: int | None
    kind: ReasonKind
    code: ErrorCode | None
    subject: str  # such as a partition, "orders-3"
    message: str  # the rule and the state, in words
    times: int

    @property
    def outcome(self) -> str:
        return self.kind.value if self.code is None else self.code.name

    @property
    def is_step(self) -> bool:
        """
        Whether the answer is a step of the protocol rather than a failure.
        """
        return (self.api, self.code) in _STEPS


class Reasons:
    def __init__(self, capacity: int = 1000) -> None:
        self.capacity = capacity
        self._reasons: OrderedDict[tuple[object, ...], Reason] = OrderedDict()  # oldest first

    def __len__(self) -> int:
        return len(self._reasons)

    def remember(
        self,
        when_ms: int,
        client: ClientInfo,
        message: str,
        *,
        client_id: str | None = None,
        api: str = "",
        version: int | None = None,
        kind: ReasonKind = ReasonKind.REFUSED,
        code: ErrorCode | None = None,
        subject: str = "",
    ) -> None:
        what = (
            _cut(client_id or ""),
            client.host,
            client.listener,
            client.principal,
            _cut(client.software),
            _cut(client.software_version),
            api,
            version,
            kind,
            code,
            _cut(subject),
            _cut(message),
        )
        known = self._reasons.pop(what, None)
        since_ms, times = (known.since_ms, known.times) if known else (when_ms, 0)
        self._reasons[what] = Reason(when_ms, since_ms, *what, times + 1)
        if len(self._reasons) > self.capacity:
            self._reasons.popitem(last=False)

    def latest(
        self,
        limit: int,
        client: str | None = None,
        api: str | None = None,
        outcome: str | None = None,
        since_ms: float = 0,
    ) -> list[Reason]:
        """
        The last matching reasons, newest last. `client` is a pattern as in file names, for the client id or the host.
        `api` is a name and `outcome` the name of an error code or a kind, both in any case.
        """
        found: list[Reason] = []
        for reason in reversed(self._reasons.values()):
            if len(found) == limit or reason.when_ms < since_ms:
                break
            if _fits(reason, client, api, outcome):
                found.append(reason)
        return found[::-1]


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…"


def _fits(reason: Reason, client: str | None, api: str | None, outcome: str | None) -> bool:
    return (
        (client is None or fnmatchcase(reason.client_id, client) or fnmatchcase(reason.host, client))
        and (api is None or reason.api.lower() == api.lower())
        and (outcome is None or outcome.lower() in (reason.outcome.lower(), reason.kind))
    )
