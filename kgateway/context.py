"""
What handlers and filters know in addition to the request: the client, its connection, and the gateway.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from twisted.internet.defer import Deferred, execute
from twisted.internet.interfaces import IReactorTime

from kgateway.action_queue import ActionQueue
from kgateway.cluster.view import Address, Node
from kgateway.config.settings import Settings
from kgateway.interfaces import IAuthorizer, IBroker
from kgateway.security.permissions import CLUSTER, OPERATIONS, Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message

ANONYMOUS = "User:ANONYMOUS"
REFUSALS_MAX = 10  # of one request: it may name many thousand partitions, with much the same errors

S = TypeVar("S", bound="Service")
InThread = Callable[[Callable[[], Any]], Deferred[Any]]
Ask = Callable[[Message, "Context"], Awaitable[Message]]


class Service(Protocol):
    """
    Something that all handlers of a gateway share, such as the fetch sessions. There is one instance, which is created
    when it is first used.
    """

    def __init__(self, gateway: "GatewayParts") -> None: ...


@runtime_checkable
class Stoppable(Protocol):
    """
    A service that has timers, or makes clients wait.
    """

    def stop(self) -> None:
        """
        Cancel the timers and end all waits.
        """


async def _unserved(request: Message, context: "Context") -> Message:
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"no handler serves {type(request).__name__}")


@dataclass(slots=True)
class GatewayParts:
    """
    The parts of a gateway that its handlers use.

    `clock` is the monotonic clock, for timers; `now_ms` is the wall clock, for timestamps. `in_thread` is for calls
    that spend their time in C and release the interpreter lock. `ask` serves a request that a handler makes. `actions`
    are done after the responses of an iteration of the reactor.
    """

    broker: IBroker
    settings: Settings
    authorizer: IAuthorizer
    clock: IReactorTime
    now_ms: Callable[[], int]
    advertised: dict[int, tuple[range, str]] = field(default_factory=dict)  # API key -> versions, name
    services: dict[type, Any] = field(default_factory=dict)
    in_thread: InThread = execute
    ask: Ask = _unserved
    actions: ActionQueue = field(init=False)

    def __post_init__(self) -> None:
        self.actions = ActionQueue(self.clock)

    def service(self, kind: type[S]) -> S:
        """
        Return the only instance of this class.
        """
        if kind not in self.services:
            self.services[kind] = kind(self)
        service: S = self.services[kind]
        return service

    def stop(self) -> None:
        for service in self.services.values():
            if isinstance(service, Stoppable):
                service.stop()


@dataclass(slots=True)
class Session:
    """
    The connection of a client: the listener through which it came, its address, its principal, and its software, if the
    client names it.
    """

    listener: str
    host: str  # of the client
    local: Address  # of the socket that the client connected to
    advertised: Address | None = None  # in place of `local`
    connected: bool = True
    principal: str = ANONYMOUS
    software: str = "unknown"
    software_version: str = "unknown"
    appending: Deferred[None] | None = None  # while the last Produce is not appended; fires when it is


@dataclass(frozen=True, slots=True)
class Refusal:
    """
    An error on its way to a client, and what it is about.
    """

    error: KafkaError
    subject: str

    @classmethod
    def of(cls, error: KafkaError, subject: object = "") -> Self:
        """
        The traceback is dropped, because it would keep the request and its whole frame.
        """
        error.__traceback__ = error.__context__ = error.__cause__ = None
        return cls(error, str(subject))


class Context:
    """
    One request: its `version`, `client_id` and `correlation_id`, its `session`, and the parts of the gateway.

    Set `throttle_ms` to make the client wait before its next request, if this version of the response has the field.
    To close the connection without a response, set `hang_up` to the reason.
    """

    __slots__ = (
        "_gateway",
        "broker",
        "client_id",
        "correlation_id",
        "hang_up",
        "in_filter",
        "refusals",
        "session",
        "started",
        "throttle_ms",
        "version",
        "wants_no_answer",
    )

    def __init__(
        self,
        gateway: GatewayParts,
        session: Session,
        version: int,
        client_id: str | None,
        correlation_id: int = 0,
        started: float = 0.0,
    ) -> None:
        self._gateway = gateway
        self.broker: IBroker = gateway.broker  # the topics, and the partitions that this gateway leads
        self.session = session
        self.version = version
        self.client_id = client_id
        self.correlation_id = correlation_id
        self.started = started  # by the monotonic clock
        self.refusals: list[Refusal] | None = None
        self.throttle_ms = 0  # put into the answer, if its version has the field
        self.hang_up: str | None = None  # why the connection is closed and no answer is sent
        self.wants_no_answer = False
        self.in_filter = False  # whether a filter has the request, and the handler has not begun

    @property
    def settings(self) -> Settings:
        """
        The options of the gateway.
        """
        return self._gateway.settings

    @property
    def clock(self) -> IReactorTime:
        """
        The monotonic clock, for timers.
        """
        return self._gateway.clock

    @property
    def actions(self) -> ActionQueue:
        """
        What this request causes for others: done after its answer.
        """
        return self._gateway.actions

    @property
    def now_ms(self) -> int:
        """
        The wall clock, for timestamps.
        """
        return self._gateway.now_ms()

    @property
    def served(self) -> dict[int, tuple[range, str]]:
        """
        The advertised APIs: their versions and names, by key.
        """
        return self._gateway.advertised

    def service(self, kind: type[S]) -> S:
        """
        Return the gateway's instance of this class, which all requests share.
        """
        known: S | None = self._gateway.services.get(kind)
        return self._gateway.service(kind) if known is None else known

    def ask(self, request: Message) -> Awaitable[Message]:
        """
        Send another request on behalf of the same client, and return the response of the handler of its newest version.
        The request passes through the filters around its API, as if the client had sent it. Raises KafkaError if the
        request is refused as a whole.
        """
        return self._gateway.ask(request, self)

    def allowed(self, operation: Operation, resource: Resource, name: str = CLUSTER) -> bool:
        """
        Return whether the client may do this to the resource with this name.
        """
        session = self.session
        return self._gateway.authorizer.allowed(session.principal, operation, resource, name, session.host)

    def demand(self, operation: Operation, resource: Resource, name: str = CLUSTER) -> None:
        """
        Raise KafkaError if the client may not do this.
        """
        session = self.session
        if not self._gateway.authorizer.allowed(session.principal, operation, resource, name, session.host):
            wanted = f"{session.principal} may not {operation.name} {resource.name} {name}"
            raise KafkaError(_DENIALS[resource], wanted)

    def permitted(self, resource: Resource, name: str = CLUSTER) -> int:
        """
        Return a set of bits, one for each operation that the client may perform on the resource.
        """
        return sum(1 << operation for operation in OPERATIONS[resource] if self.allowed(operation, resource, name))

    def refuse(self, error: KafkaError, subject: object = "") -> ErrorCode:
        """
        Record the error for `kgateway why`, and return its code for the response. This raises nothing. Only the first
        few errors of a request are recorded.
        """
        if self.refusals is None:
            self.refusals = []
        if len(self.refusals) < REFUSALS_MAX:
            self.refusals.append(Refusal.of(error, subject))
        return error.code

    def address(self, node: Node) -> Address:
        """
        Return the address at which this client reaches the node.
        """
        session = self.session
        known = node.addresses.get(session.listener)
        if node.id != self._gateway.broker.node_id and known:
            return known
        return session.advertised or session.local


_DENIALS = {
    Resource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Resource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Resource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    Resource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Resource.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    Resource.USER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
