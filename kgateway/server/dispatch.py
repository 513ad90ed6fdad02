"""
From a frame to its answer: finds the route of its API and version, decodes, handles, encodes, and remembers why an
error was answered.

A handler that fails ends only its own request: a KafkaError is an answer like any other; anything else is a bug of
ours, logged with its traceback and answered as UNKNOWN_SERVER_ERROR.
"""

import struct
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.context import REFUSALS_MAX, Context, GatewayParts, Refusal, Session
from kgateway.interfaces import IApiFilter, IApiHandler, Response
from kgateway.late_response import LateResponse
from kgateway.log_messages import CANNOT_ENCODE, REQUEST_FAILED, RESPONSE_LOST
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.observe.printable import printable
from kgateway.observe.reasons import ReasonKind, Reasons
from kgateway.server.answers import error_finder, refused, unsupported_version
from kgateway.server.filters import filtered
from kgateway.server.registry import Registry, api_name
from kgateway.server.request_queue import HangUp, PendingAnswer
from kgateway.wire.codec import decoder, encoder
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.headers import RequestHeader, peek, request_header_version, response_frame, response_header_version
from kgateway.wire.schema import Message
from kgateway.wire.types import Buffer

_head = struct.Struct(">ii").pack
_API_VERSIONS = 18
_KEY_AND_VERSION = 4  # bytes at the start of a request
_INTERNAL_ERROR = "the gateway failed unexpectedly; its log has the traceback"


class Route:
    """
    What one API in one version needs: how a request is read, which handler serves it, and how the answer is written. It
    is made at the first such request, because the codec generates its functions then.
    """

    def __init__(self, handler: IApiHandler, filters: Sequence[IApiFilter], version: int) -> None:
        self.api = api_name(handler.request)
        self.version = version
        self.request = handler.request
        self.response = handler.response
        self.overlaps = handler.overlaps
        self.polls = handler.polls
        self.may_want_no_answer = handler.request is ProduceRequest
        self.throttles = any(field.name == "throttle_time_ms" for field in handler.response.__fields__)
        self.calls = 0
        self.errors = 0
        self.seconds = 0.0
        self.read_header = decoder(RequestHeader, request_header_version(handler.request, version))
        self.read: Callable[[bytes, int], tuple[Message, int]] = decoder(handler.request, version)
        self._write: Callable[[Any], list[Buffer]] = encoder(handler.response, version)
        # A response header is the correlation id and, if it is flexible, an empty section of tags.
        self._header_end = b"\0" * response_header_version(handler.response, version)
        self.find_errors = error_finder(handler.response)
        self.handle: Callable[[Any, Context], Response] = handler.handle
        if filters:
            self.handle = filtered(handler, filters)

    def frame(self, response: Message, correlation_id: int) -> list[bytes]:
        """
        The response on the wire: size, header, body. Record batches that are bytes are passed on uncopied; Twisted's
        transports take nothing but bytes.
        """
        body = self._write(response)
        first, end = body[0], self._header_end
        size = 4 + len(end) + len(first)
        if len(body) == 1:  # no record batches
            return [b"".join((_head(size, correlation_id), end, first))]
        buffers = [b""]
        for part in body[1:]:
            size += part.nbytes if isinstance(part, memoryview) else len(part)
            buffers.append(part if type(part) is bytes else bytes(part))
        buffers[0] = b"".join((_head(size, correlation_id), end, first))
        return buffers


class Dispatcher:
    _log = Logger()

    def __init__(self, gateway: GatewayParts, registry: Registry, reasons: Reasons) -> None:
        self._gateway = gateway
        self._registry = registry
        self._reasons = reasons
        self._seconds = gateway.clock.seconds
        self._handles = False  # whether a handler runs just now
        self.routes: dict[tuple[int, int], Route] = {}
        self._by_head: dict[bytes, Route] = {}  # the same by the first bytes of their requests

    def serve(self, frame: bytes, session: Session) -> list[bytes] | PendingAnswer:
        """
        The answer to a request. Malformed or HangUp mean that the connection must be closed.
        """
        route = self._by_head.get(frame[:_KEY_AND_VERSION]) or self._route_of(frame)
        if route is None:
            return self._answer_unserved(frame, session)
        header, start = route.read_header(frame, 0)
        request, _ = route.read(frame, start)
        context = Context(
            self._gateway, session, route.version, header.client_id, header.correlation_id, self._seconds()
        )
        if route.may_want_no_answer:
            context.wants_no_answer = request.acks == 0  # type: ignore[attr-defined]  # it is a ProduceRequest
        try:
            self._handles = True
            response = route.handle(request, context)
            self._handles = False
            if response is None or isinstance(response, Message):
                return self.answer(route, response, context)
            work = response if isinstance(response, LateResponse) else _deferred(response)
        except Exception:
            self._handles = False
            return self.answer_failure(route, request, Failure(), context)
        running = _RunningRequest(self, route, request, context)
        running.follow(work)
        return running.buffers if running.ready and not running.hang_up else running

    async def ask(self, request: Message, context: Context) -> Message:
        """
        The response to a request that a handler makes for its client; see `Context.ask`.
        """
        wanted = type(request).__spec__.key
        newest = max((served for served in self._registry.active if served[0] == wanted), default=None)
        route = newest and (self.routes.get(newest) or self._new_route(*newest))
        if route is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{api_name(type(request))} is not served here")
        inner = Context(
            self._gateway, context.session, route.version, context.client_id, context.correlation_id, self._seconds()
        )
        response = route.handle(request, inner)
        if response is not None and not isinstance(response, Message):
            response = await response
        context.throttle_ms = max(context.throttle_ms, inner.throttle_ms)
        context.hang_up = context.hang_up or inner.hang_up
        if response is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{route.api} v{route.version} was not answered")
        return response

    def _route_of(self, frame: bytes) -> Route | None:
        key, version, _ = peek(frame)
        route = self.routes.get((key, version)) or self._new_route(key, version)
        if route:
            self._by_head[frame[:_KEY_AND_VERSION]] = route
        return route

    def _new_route(self, key: int, version: int) -> Route | None:
        plugin = self._registry.active.get((key, version))
        if plugin is None:
            return None
        handler = plugin.value
        route = self.routes[key, version] = Route(handler, self._registry.filters(handler.request), version)
        return route

    def _answer_unserved(self, frame: bytes, session: Session) -> list[bytes]:
        """
        Kafka closes the connection of a client that uses an API or version it was not offered. Only ApiVersions is
        answered, in the form that every client reads, so that the client can try again (KIP-511).
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

    def after_handler(self, answer: Callable[[], None]) -> None:
        """
        Answer a request that has waited. If the handler of another request has ended the wait, that request is answered
        first.
        """
        if self._handles:
            self._gateway.actions.add(answer)
        else:
            answer()

    def answer(self, route: Route, response: Message | None, context: Context) -> list[bytes]:
        """
        Encode the response, count the request, and remember the errors in it.
        """
        if response is None or context.hang_up is not None:
            self._account(route, context)
            if context.hang_up is not None:
                raise HangUp(context.hang_up)
            return []
        if context.throttle_ms and route.throttles:
            response.throttle_time_ms = context.throttle_ms  # type: ignore[attr-defined]  # the route has checked
        buffers = route.frame(response, context.correlation_id)
        errors = route.find_errors(response)
        route.calls += 1
        route.seconds += self._seconds() - context.started
        if errors or context.refusals:
            self._remember_errors(route, context, errors)
        if not context.wants_no_answer:
            return buffers
        if errors:
            raise HangUp(f"{route.api} v{route.version} failed, and its client does not wait for a response")
        return []

    def answer_failure(self, route: Route, request: Message, failure: Failure, context: Context) -> list[bytes]:
        error = failure.value
        if isinstance(error, HangUp):
            raise error
        if isinstance(error, CancelledError):
            raise HangUp("the request was abandoned")
        kind = ReasonKind.REFUSED
        if not isinstance(error, KafkaError):
            kind = ReasonKind.FAILED
            self._log.failure(
                REQUEST_FAILED,
                failure,
                api=route.api,
                version=route.version,
                client=printable(context.client_id or "a client without a name"),
            )
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, _INTERNAL_ERROR)
        context.refusals = [Refusal.of(error)]  # in place of those that the handler had noted
        self._account(route, context, kind)
        if context.wants_no_answer:
            raise HangUp(f"{route.api} v{route.version} failed, and its client does not wait for a response: {error}")
        response = refused(request, route.response, route.version, error)
        if response is None:
            raise HangUp(f"{route.api} v{route.version} cannot report {error}")
        return route.frame(response, context.correlation_id)

    def _account(self, route: Route, context: Context, kind: ReasonKind = ReasonKind.REFUSED) -> None:
        """
        Count a request without a response of its handler.
        """
        route.calls += 1
        route.seconds += self._seconds() - context.started
        if context.refusals:
            self._remember_errors(route, context, [], kind)

    def _remember_errors(
        self, route: Route, context: Context, errors: list[tuple[int, str]], kind: ReasonKind = ReasonKind.REFUSED
    ) -> None:
        route.errors += 1
        self._remember(route.api, route.version, context, errors, kind)

    def _remember(
        self,
        api: str,
        version: int,
        context: Context,
        errors: list[tuple[int, str]],
        kind: ReasonKind = ReasonKind.REFUSED,
    ) -> None:
        """
        Remember the refusals with their reasons, and codes without a reason with their meaning.
        """
        refusals = [(refusal.error, refusal.subject) for refusal in context.refusals or ()]
        explained = {error.code for error, _ in refusals}
        bare = ((_meaning(code), subject) for code, subject in errors if code not in explained)
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


class _RunningRequest(PendingAnswer):
    __slots__ = ("_context", "_dispatcher", "_request", "_route")
    _log = Logger()

    def __init__(self, dispatcher: Dispatcher, route: Route, request: Message, context: Context) -> None:
        # A filter may still hold the request, and the next records must not overtake it.
        super().__init__(next_may_start=route.overlaps and not context.in_filter, polls=route.polls)
        self._dispatcher = dispatcher
        self._route = route
        self._request = request
        self._context = context

    @property
    def api(self) -> str:
        return self._route.api

    def follow(self, work: LateResponse | Deferred[Any]) -> None:
        super().follow(work)
        if isinstance(work, LateResponse):
            work.call_at_end(self._succeeded, self._failed)
        else:
            work.addCallbacks(self._succeeded, self._failed).addErrback(self._lost)

    def _succeeded(self, response: Message | None) -> None:
        self._dispatcher.after_handler(partial(self._answer, response))

    def _failed(self, failure: Failure) -> None:
        self._dispatcher.after_handler(partial(self._answer_failure, failure))

    def _answer(self, response: Message | None) -> None:
        try:
            buffers = self._dispatcher.answer(self._route, response, self._context)
        except Exception:
            self._answer_failure(Failure())
        else:
            self.succeed(buffers)

    def _answer_failure(self, failure: Failure) -> None:
        try:
            buffers = self._dispatcher.answer_failure(self._route, self._request, failure, self._context)
        except HangUp as reason:
            self.fail(str(reason))
        except Exception as error:
            self._log.failure(CANNOT_ENCODE, api=self._route.api, version=self._route.version)
            self.fail(str(error))
        else:
            self.succeed(buffers)

    def _lost(self, failure: Failure) -> None:
        self._log.failure(RESPONSE_LOST, failure)


def _meaning(code: int) -> KafkaError:
    """
    An error code without a reason. Clients take an unknown code for UNKNOWN_SERVER_ERROR.
    """
    try:
        return KafkaError(ErrorCode(code))
    except ValueError:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the response has {code}, which is not an error code of Kafka"
        )


def _deferred(response: Awaitable[Message | None]) -> Deferred[Message | None]:
    if isinstance(response, Deferred):
        return response
    return Deferred.fromCoroutine(cast(Coroutine[Any, Any, Message | None], response))
