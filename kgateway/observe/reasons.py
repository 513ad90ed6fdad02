"""
Why clients were refused. Kafka's error codes are mute; here the rule and the state behind each one stay for a while.

What is remembered is bounded twice: by the number of reasons, of which the oldest goes first, and by the length of the
texts that clients choose. A reason that comes again is counted and moves to the end. So a client, or ten of them, that
poll for what they cannot have take one place each, and push nothing else out.
"""

from collections import OrderedDict
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol

from kgateway.wire.errors import ErrorCode

_TEXT_CHARS = 400  # a client may choose names of 32 KiB, and a thousand of them


class Kind(StrEnum):
    """
    What happened to the request or its connection.
    """

    REFUSED = "refused"  # answered with an error code
    FAILED = "failed"  # a handler raised what nobody foresaw
    MALFORMED = "malformed"  # the bytes are not Kafka's, and the connection was closed
    CLOSED = "closed"  # the connection was closed for another reason


class Client(Protocol):
    """
    What is known of who asked; a connection's session has it.
    """

    listener: str
    host: str
    principal: str
    software: str
    software_version: str


class Reason(NamedTuple):
    """
    One reason, and how often it came.
    """

    when_ms: int  # the last time
    since_ms: int  # the first time
    client_id: str
    host: str
    listener: str
    principal: str
    software: str
    software_version: str
    api: str  # empty where the connection was closed before one was known
    version: int | None
    kind: Kind
    code: ErrorCode | None
    subject: str  # such as a partition, "orders-3"
    message: str  # the rule and the state, in words
    times: int

    @property
    def outcome(self) -> str:
        """
        The code that was answered; without one, what happened instead.
        """
        return self.kind.value if self.code is None else self.code.name


class Reasons:
    """
    The latest reasons.
    """

    def __init__(self, capacity: int = 1000) -> None:
        self.capacity = capacity
        self._reasons: OrderedDict[tuple[object, ...], Reason] = OrderedDict()  # by what, oldest first

    def __len__(self) -> int:
        return len(self._reasons)

    def remember(
        self,
        when_ms: int,
        client: Client,
        message: str,
        *,
        client_id: str | None = None,
        api: str = "",
        version: int | None = None,
        kind: Kind = Kind.REFUSED,
        code: ErrorCode | None = None,
        subject: str = "",
    ) -> None:
        """
        Keep a reason, or count it where it is known.
        """
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
        self, limit: int, client: str | None = None, api: str | None = None, outcome: str | None = None
    ) -> list[Reason]:
        """
        The last ones that fit, newest last. `client` is a pattern as in file names, for the client id or the host;
        `api` is a name, `outcome` that of an error code or a kind, both in whatever case.
        """
        found: list[Reason] = []
        for reason in reversed(self._reasons.values()):
            if len(found) == limit:
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
