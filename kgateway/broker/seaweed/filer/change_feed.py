"""
The changes below a folder, as a filer reports them.

The feed only wakes its listener: it is never complete. After a break it continues where it was, but a filer that was
killed has forgotten its last changes, so after each break the listener learns that changes may be missing, and reads.
"""

import random
from collections.abc import Awaitable, Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import FilerRefused, Retries
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.call_headers import Method
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.protos.filer_pb2 import SubscribeMetadataRequest, SubscribeMetadataResponse
from kgateway.log_messages import CANNOT_HANDLE_CHANGE

Changed = Callable[[SubscribeMetadataResponse], object]

_SUBSCRIBE = Method("/filer_pb.SeaweedFiler/SubscribeMetadata", SubscribeMetadataRequest, SubscribeMetadataResponse)
_ID_MAX = (1 << 31) - 1


class ChangeFeed:
    """
    The changes of all paths with a prefix. `lost` is called when some may not have been reported: changes before that
    call can be read then, and changes after it are reported.
    """

    _log = Logger()

    def __init__(
        self,
        filer: Callable[[], Awaitable[Filer]],
        prefix: str,
        retries: Retries,
        changed: Changed,
        lost: Callable[[], object],
        client_name: str,
    ) -> None:
        self._filer = filer
        self._prefix = prefix
        self._retries = retries
        self._changed = changed
        self._lost = lost
        self._client_name = client_name
        self._since_ns: int | None = None
        self._breaks = 0  # in a row, without any change between
        self._running: Deferred[None] | None = None

    def start(self) -> Deferred[None]:
        """
        Fires when every change from now on will be reported, or `lost` called.
        """
        started: Deferred[None] = Deferred()
        self._running = Deferred.fromCoroutine(self._run(started))
        self._running.addErrback(lambda failure: failure.trap(CancelledError))
        return started

    def stop(self) -> None:
        if self._running:
            self._running.cancel()

    async def _run(self, started: Deferred[None]) -> None:
        while True:
            try:
                filer = await self._filer()
                now_ns = await filer.now_ns()
                self._since_ns = min(now_ns, self._since_ns or now_ns)  # another filer's clock may be behind
                ended = self._open(filer)
                if started.called:
                    self._tell(self._lost)
                else:
                    started.callback(None)
                error: Exception | None = await ended
            except (RpcError, FilerRefused) as failed:
                error = failed
            self._breaks += 1
            self._log.info("the feed of {prefix} has ended: {error}", prefix=self._prefix, error=error)
            await self._retries.pause(self._breaks)

    def _open(self, filer: Filer) -> Deferred[RpcError | None]:
        """
        Fires with the reason why the feed has ended.
        """
        request = SubscribeMetadataRequest(
            client_name=self._client_name,
            path_prefix=self._prefix,
            since_ns=self._since_ns,
            # With the id 0 a filer sends the changes that it knows, and no more; it refuses an id that is still open.
            client_id=random.SystemRandom().randint(1, _ID_MAX),
        )

        def cancel(ended: Deferred[RpcError | None]) -> None:
            ended.errback(CancelledError())  # else its end would be a break like any other
            stream.cancel()

        ended: Deferred[RpcError | None] = Deferred(cancel)
        stream = filer.channel.open(
            _SUBSCRIBE, self._received, lambda error: None if ended.called else ended.callback(error)
        )
        stream.send([request.SerializeToString()])
        stream.finish()
        return ended

    def _received(self, message: bytes) -> None:
        found = SubscribeMetadataResponse.FromString(message)
        self._breaks = 0
        self._since_ns = max(self._since_ns or 0, found.ts_ns)
        if found.HasField("event_notification"):
            self._tell(lambda: self._changed(found))

    def _tell(self, listener: Callable[[], object]) -> None:
        try:
            listener()
        except Exception:
            self._log.failure(CANNOT_HANDLE_CHANGE)
