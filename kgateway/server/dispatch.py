"""
From a frame to its answer: finds the route, decodes, handles, encodes, and remembers why an error was answered.

A handler that fails ends its own request: a KafkaError is an answer like any other, anything else is a bug of ours,
logged with its traceback and answered as UNKNOWN_SERVER_ERROR.
"""

from collections.abc import Awaitable, Coroutine
from typing import Any, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.context import Context, GatewayParts, Session
from kgateway.observe.reasons import Kind, Reasons
from kgateway.server.answers import refused, unsupported_version
from kgateway.server.pending import HangUp, Pending
from kgateway.server.registry import Registry
from kgateway.server.route import Route
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.headers import peek, response_frame
from kgateway.wire.schema import Message

_API_VERSIONS = 18
_REFUSALS_MAX = 10  # of one request: it may name a thousand partitions, and they say much the same
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
            return self._unserved(key, version, correlation_id, session)
        header, start = route.read_header(frame, 0)
        request, _ = route.read(frame, start)
        context = Context(self._gateway, session, version, header.client_id, correlation_id, self._seconds())
        try:
            response = route.handle(request, context)
            if response is None or isinstance(response, Message):
                return self._answer(route, request, response, context)
            work = _deferred(response)
        except HangUp:
            raise
        except Exception:
            return self._answer_failure(route, request, Failure(), context)
        return self._wait(route, request, work, context)

    def _new_route(self, key: int, version: int) -> Route | None:
        plugin = self._registry.active.get((key, version))
        if plugin is None:
            return None
        handler = plugin.value
        route = self.routes[key, version] = Route(handler, self._registry.filters(handler.request), version)
        return route

    def _unserved(self, key: int, version: int, correlation_id: int, session: Session) -> list[bytes]:
        """
        Kafka closes the connection of a client that asks for what it was not offered; ApiVersions alone is answered,
        in the form that every client reads, so that it can try again (KIP-511).
        """
        served = self._registry.advertised
        if key != _API_VERSIONS or key not in served:
            what = f"{served[key][1]} v{version}" if key in served else f"the API with key {key}"
            raise HangUp(f"{what} is not served here")
        reason = f"ApiVersions v{version} is not served here"
        context = Context(self._gateway, session, 0, None)
        context.refuse(KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason))
        self._remember("ApiVersions", version, context, [])
        return [b"".join(response_frame(unsupported_version(served), 0, correlation_id))]

    def _wait(
        self, route: Route, request: Message, work: Deferred[Message | None], context: Context
    ) -> list[bytes] | Pending:
        """
        The answer that comes out of a Deferred.
        """
        pending = Pending(next_may_start=route.overlaps, polls=route.polls)

        def succeeded(response: Message | None) -> None:
            pending.become(self._answer(route, request, response, context))

        def failed(failure: Failure) -> None:
            pending.become(self._answer_failure(route, request, failure, context))

        def hang_up(failure: Failure) -> None:
            failure.trap(HangUp)
            pending.fail(str(failure.value))

        answered = work.addCallbacks(succeeded, failed)
        answered.addErrback(hang_up)
        answered.addErrback(lambda failure: self._log.failure("an answer was lost", failure))
        pending.follow(answered)
        return pending.buffers if pending.ready and not pending.hang_up else pending

    def _answer(self, route: Route, request: Message, response: Message | None, context: Context) -> list[bytes]:
        """
        The response as bytes; what it says of errors is remembered.
        """
        route.calls += 1
        route.seconds += self._seconds() - context.started
        if context.hang_up is not None:
            self._remember(route.api, route.version, context, [])
            raise HangUp(context.hang_up)
        if response is None:
            return []
        if context.throttle_ms:
            response.throttle_time_ms = context.throttle_ms  # type: ignore[attr-defined]  # all that clients send have it
        errors = route.find_errors(response)
        if errors or context.refusals:
            route.errors += 1
            self._remember(route.api, route.version, context, errors)
        try:
            return route.frame(response, context.correlation_id)
        except Exception:
            return self._answer_failure(route, request, Failure(), context)

    def _answer_failure(self, route: Route, request: Message, failure: Failure, context: Context) -> list[bytes]:
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
                client=context.client_id,
            )
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, _OURS)
        context.refuse(error)
        route.errors += 1
        self._remember(route.api, route.version, context, [], kind)
        response = refused(request, route.response, route.version, error)
        if response is None:
            raise HangUp(f"{route.api} v{route.version} has no place for {error}")
        return route.frame(response, context.correlation_id)

    def _remember(
        self, api: str, version: int, context: Context, errors: list[tuple[int, str]], kind: Kind = Kind.REFUSED
    ) -> None:
        """
        The refusals with their reasons; a code that nobody gave a reason for, with what it means.
        """
        refusals = [(refusal.error, refusal.subject) for refusal in context.refusals or ()]
        told = {error.code for error, _ in refusals}
        bare = [(KafkaError(ErrorCode(code)), subject) for code, subject in errors if code not in told]
        for error, subject in [*refusals, *bare][:_REFUSALS_MAX]:
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


def _deferred(response: Awaitable[Message | None]) -> Deferred[Message | None]:
    if isinstance(response, Deferred):
        return response
    return Deferred.fromCoroutine(cast(Coroutine[Any, Any, Message | None], response))
