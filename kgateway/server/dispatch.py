"""
From a frame to its answer: finds the route, decodes, handles, encodes, and remembers why an error was answered.

A handler that fails ends its own request: a KafkaError is an answer like any other, anything else is a bug of ours,
logged with its traceback and answered as UNKNOWN_SERVER_ERROR.
"""

from collections.abc import Awaitable, Coroutine
from itertools import chain, islice
from typing import Any, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.context import REFUSALS_MAX, Context, GatewayParts, Refusal, Session
from kgateway.later import Later
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.observe.plain import printable
from kgateway.observe.reasons import Kind, Reasons
from kgateway.server.answers import refused, unsupported_version
from kgateway.server.pending import HangUp, Pending
from kgateway.server.registry import Registry
from kgateway.server.route import Route
from kgateway.wire.codec import decoder
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.headers import RequestHeader, peek, request_header_version, response_frame
from kgateway.wire.schema import Message

_API_VERSIONS = 18
_OURS = "the gateway failed unforeseen; the traceback is in its log"


class Dispatcher:
    """
    Serves frames.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts, registry: Registry, reasons: Reasons) -> None:
        self._gateway = gateway
        self._registry = registry
        self._reasons = reasons
        self._seconds = gateway.clock.seconds
        self.routes: dict[tuple[int, int], Route] = {}

    def serve(self, frame: bytes, session: Session) -> list[bytes] | Pending:
        """
        The answer to a request; Malformed or HangUp where the connection has to end.
        """
        key, version, correlation_id = peek(frame)
        route = self.routes.get((key, version)) or self._new_route(key, version)
        if route is None:
            return self._unserved(frame, session)
        header, start = route.read_header(frame, 0)
        request, _ = route.read(frame, start)
        context = Context(self._gateway, session, version, header.client_id, correlation_id, self._seconds())
        context.unanswered = isinstance(request, ProduceRequest) and request.acks == 0
        try:
            response = route.handle(request, context)
            if response is None or isinstance(response, Message):
                return self.answer(route, response, context)
            work = response if isinstance(response, Later) else _deferred(response)
        except Exception:
            return self.answer_failure(route, request, Failure(), context)
        begun = _Begun(self, route, request, context)
        begun.follow(work)
        return begun.buffers if begun.ready and not begun.hang_up else begun

    def _new_route(self, key: int, version: int) -> Route | None:
        plugin = self._registry.active.get((key, version))
        if plugin is None:
            return None
        handler = plugin.value
        route = self.routes[key, version] = Route(handler, self._registry.filters(handler.request), version)
        return route

    def _unserved(self, frame: bytes, session: Session) -> list[bytes]:
        """
        Kafka closes the connection of a client that asks for what it was not offered; ApiVersions alone is answered,
        in the form that every client reads, so that it can try again (KIP-511).
        """
        key, version, correlation_id = peek(frame)
        served = self._registry.advertised
        if key != _API_VERSIONS or key not in served:
            what = f"{served[key][1]} v{version}" if key in served else f"the API with key {key}"
            raise HangUp(f"{what} is not served here")
        reason = f"ApiVersions v{version} is not served here"
        header, _ = decoder(RequestHeader, request_header_version(ApiVersionsRequest, version))(frame, 0)
        context = Context(self._gateway, session, 0, header.client_id)
        context.refuse(KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason))
        self._remember("ApiVersions", version, context, [])
        return [b"".join(response_frame(unsupported_version(served), 0, correlation_id))]

    def answer(self, route: Route, response: Message | None, context: Context) -> list[bytes]:
        """
        The response as bytes; what it says of errors is remembered.
        """
        if response is None or context.hang_up is not None:
            self._account(route, context, [])
            if context.hang_up is not None:
                raise HangUp(context.hang_up)
            return []
        if context.throttle_ms and route.throttles:
            response.throttle_time_ms = context.throttle_ms  # type: ignore[attr-defined]  # the route has looked
        buffers = route.frame(response, context.correlation_id)
        errors = route.find_errors(response)
        self._account(route, context, errors)
        if not context.unanswered:
            return buffers
        if errors:
            raise HangUp(f"{route.api} v{route.version} failed, and its client waits for no answer")
        return []

    def answer_failure(self, route: Route, request: Message, failure: Failure, context: Context) -> list[bytes]:
        """
        The answer to a request whose handler raised.
        """
        error = failure.value
        if isinstance(error, HangUp):
            raise error
        if isinstance(error, CancelledError):
            raise HangUp("the request was given up")
        kind = Kind.REFUSED
        if not isinstance(error, KafkaError):
            kind = Kind.FAILED
            self._log.failure(
                "{api} v{version} of {client} failed",
                failure,
                api=route.api,
                version=route.version,
                client=printable(context.client_id or "a client without a name"),
            )
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, _OURS)
        context.refusals = [Refusal.of(error)]  # it stands for all that was to be answered
        self._account(route, context, [], kind)
        if context.unanswered:
            raise HangUp(f"{route.api} v{route.version} failed, and its client waits for no answer: {error}")
        response = refused(request, route.response, route.version, error)
        if response is None:
            raise HangUp(f"{route.api} v{route.version} has no place for {error}")
        return route.frame(response, context.correlation_id)

    def _account(
        self, route: Route, context: Context, errors: list[tuple[int, str]], kind: Kind = Kind.REFUSED
    ) -> None:
        """
        Count the request, and remember of what it was refused.
        """
        route.calls += 1
        route.seconds += self._seconds() - context.started
        if errors or context.refusals:
            route.errors += 1
            self._remember(route.api, route.version, context, errors, kind)

    def _remember(
        self, api: str, version: int, context: Context, errors: list[tuple[int, str]], kind: Kind = Kind.REFUSED
    ) -> None:
        """
        The refusals with their reasons; a code that nobody gave a reason for, with what it means.
        """
        refusals = [(refusal.error, refusal.subject) for refusal in context.refusals or ()]
        told = {error.code for error, _ in refusals}
        bare = ((_meaning(code), subject) for code, subject in errors if code not in told)
        for error, subject in islice(chain(refusals, bare), REFUSALS_MAX):
            self._reasons.remember(
                self._gateway.now_ms(),
                context.session,
                error.message or error.code.meaning,
                client_id=context.client_id,
                api=api,
                version=version,
                kind=kind,
                code=error.code,
                subject=subject,
            )


class _Begun(Pending):
    """
    The answer to a request whose handler waits.
    """

    __slots__ = ("_context", "_dispatcher", "_request", "_route")
    _log = Logger()

    def __init__(self, dispatcher: Dispatcher, route: Route, request: Message, context: Context) -> None:
        # Records must not overtake a request that a filter still has.
        super().__init__(next_may_start=route.overlaps and not context.held, polls=route.polls)
        self._dispatcher = dispatcher
        self._route = route
        self._request = request
        self._context = context

    @property
    def api(self) -> str:
        return self._route.api

    def follow(self, work: Later | Deferred[Any]) -> None:
        super().follow(work)
        if isinstance(work, Later):
            work.tell(self._succeeded, self._failed)
        else:
            work.addCallbacks(self._succeeded, self._failed).addErrback(self._lost)

    def _succeeded(self, response: Message | None) -> None:
        try:
            buffers = self._dispatcher.answer(self._route, response, self._context)
        except Exception:
            self._failed(Failure())
        else:
            self.become(buffers)

    def _failed(self, failure: Failure) -> None:
        try:
            buffers = self._dispatcher.answer_failure(self._route, self._request, failure, self._context)
        except HangUp as reason:
            self.fail(str(reason))
        except Exception as error:
            self._log.failure("{api} v{version} cannot be answered", api=self._route.api, version=self._route.version)
            self.fail(str(error))
        else:
            self.become(buffers)

    def _lost(self, failure: Failure) -> None:
        self._log.failure("an answer was lost", failure)


def _meaning(code: int) -> KafkaError:
    """
    An error code without a reason; a client takes one that it does not know for UNKNOWN_SERVER_ERROR.
    """
    try:
        return KafkaError(ErrorCode(code))
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{code} was answered, which is no error code of Kafka's")


def _deferred(response: Awaitable[Message | None]) -> Deferred[Message | None]:
    if isinstance(response, Deferred):
        return response
    return Deferred.fromCoroutine(cast(Coroutine[Any, Any, Message | None], response))
