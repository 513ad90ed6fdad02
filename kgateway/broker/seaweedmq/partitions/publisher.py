"""
Keeps a partition published, whatever becomes of its broker.

A stream is opened when there is something to publish. Before that the files of the partition are read each time: they
say what has arrived, and everything after that is published again, in order, out of what the gateway holds. So messages
that a killed broker had in its memory get the same offsets again.
"""

from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.deferreds import within
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.partitions.log_end import flushed_log_end
from kgateway.broker.seaweedmq.partitions.partition_context import PartitionContext
from kgateway.broker.seaweedmq.publishing.in_flight import (
    BatchesFrom,
    InFlight,
    OffsetsShifted,
    OutgoingBatch,
    SendWindow,
)
from kgateway.broker.seaweedmq.publishing.publish_stream import PublishStream
from kgateway.log_messages import CANNOT_PUBLISH, PUBLISHING_STOPPED, STREAM_BROKEN
from kgateway.wire.errors import KafkaError

_BACK_S = 5.0  # for a broker that does not answer, before publishing is paused
_FINISH_S = 10.0
_GONE_S = 5.0
_UNLOADED_S = 0.3  # after a broker has written all of a partition without publishers, until it takes messages
_RECENTLY_S = 2.0
_LOOK_S = 0.1
_SECOND_S = 1.0  # after which what is published begins another file
_NAME_CHARS = 100  # of a client id, which may have any length
_DELAYS_S = (0.1, 0.2, 0.5, 1.0, 2.0)


class PartitionPublisher:
    """
    Publishes the batches of a partition, and reports their progress.
    """

    _log = Logger()

    def __init__(
        self,
        context: PartitionContext,
        end: FilesEnd,
        batches_from: BatchesFrom,
        window: Callable[[], int],
        progressed: Callable[[], None],
        shifted: Callable[[OffsetsShifted], None],
    ) -> None:
        self._context = context
        self.in_flight = self._new_in_flight(end)
        self.client_id: str | None = None  # of the client whose batch came last
        self._name = f"{context.topic}-{context.index}"
        self._batches_from = batches_from
        self._window = window
        self._progressed = progressed
        self._shifted = shifted
        self._send_window: SendWindow | None = None
        self._connecting: Deferred[None] | None = None
        self._was_open = False
        self._may_unload_until = context.clock.seconds() + _RECENTLY_S if end.last_file else 0.0
        self._closed = False
        self._paused = False
        self._finished: Deferred[None] | None = None  # fires at the end of the stream that is being finished

    def publish(self, batch: OutgoingBatch) -> None:
        """
        Publish a batch, which `batches_from` returns from now on, too.
        """
        if self._send_window:
            self._send_window.send(batch, self.in_flight)
        elif self._connecting is None and not self._paused:
            self._connect()

    async def pause(self) -> FilesEnd:
        """
        Publish nothing until `resume`. Returns where the files end then.
        """
        if self._connecting:
            await within(self._context.clock, _BACK_S, self._connecting)
        self._paused = True
        if self._connecting:
            await self._connecting
        if self._send_window:
            await within(self._context.clock, _FINISH_S, self._send_window.all_sent())
        if self._send_window:
            await self._finish(self._send_window)
        end = await flushed_log_end(self._context)
        self._count_from(end)
        self._progressed()
        return end

    def resume(self) -> None:
        self._paused = False
        if self._has_unflushed():
            self._connect()

    @property
    def is_answered(self) -> bool:
        """
        Whether the broker has all of ours in memory, so that what follows is of others.
        """
        is_behind = self._send_window is not None and self._send_window.is_behind
        return not (self._connecting or self._paused or is_behind) and self.in_flight.is_answered

    def follow(self, end: FilesEnd, *, is_lost: bool) -> bool:
        """
        Continue where the files end, after what others have published; not while anything of ours is on its way. What
        was in memory may be lost. Files that go on with smaller numbers are of a broker that was killed.
        """
        in_flight = self.in_flight
        if not self.is_answered or in_flight.has_own:
            return False
        if is_lost:
            in_flight.forget()
        elif end.next_message < in_flight.next_message and end.offset <= in_flight.end:
            return False
        self._count_from(end)
        return True

    def close(self) -> None:
        self._closed = True
        if self._connecting:
            self._connecting.cancel()
        if self._send_window:
            self._send_window.stream.close()
            self._send_window = None

    def _count_from(self, end: FilesEnd) -> None:
        self.in_flight.in_files_to(end.offset - end.gap)
        self.in_flight = self._new_in_flight(end)

    def _new_in_flight(self, end: FilesEnd) -> InFlight:
        return InFlight(end.offset, end.next_message, self._context.ledger.add_flushed)

    def _connect(self) -> None:
        connecting = self._connecting = Deferred.fromCoroutine(self._keep_trying())
        connecting.addErrback(self._given_up)
        if self._connecting.called:
            self._connecting = None

    async def _keep_trying(self) -> None:
        attempts = 0
        while not (self._closed or self._paused):
            try:
                await self._open()
            except (*CLUSTER_ERRORS, KafkaError) as error:
                if not attempts:
                    self._log.warn(CANNOT_PUBLISH, name=self._name, error=error)
                delay = _DELAYS_S[min(attempts, len(_DELAYS_S) - 1)]
                attempts += 1
                await deferLater(self._context.clock, delay)
            else:
                if attempts:
                    self._log.info("publishing to {name} again", name=self._name)
                break
        self._connecting = None

    async def _open(self) -> None:
        context = self._context
        if self._send_window:
            await self._finish(self._send_window)
        if self._was_open:
            await self._until_gone()
        end = await flushed_log_end(context)
        if end.gap and any(batch.base_offset < end.offset for batch in self._batches_from(end.offset - end.gap)):
            lost = OffsetsShifted(f"messages before {end.next_message} are lost, and their offsets cannot be filled")
            context.clock.callLater(0, self._shifted, lost)  # which cancels this coroutine
            return
        if end.leaves_out and not context.format.batched:
            await deferLater(context.clock, _SECOND_S)  # within a file, messages are counted
        # A message that arrives while the broker unloads the partition gets an offset, and is lost.
        if context.clock.seconds() < self._may_unload_until:
            await deferLater(context.clock, _UNLOADED_S)
        stream = PublishStream(self._answered, self._broken, context.clock)
        assignment = await context.assignment()
        try:
            await context.rpc.publish(context.topic, assignment, stream, self._publisher_name)
            context.check_lease()
        except BaseException:
            stream.close()
            raise
        self._count_from(end)
        self._send_window, self._was_open = SendWindow(stream, self._batches_from, self._window), True
        self._send_window.send_waiting(self.in_flight)
        self._progressed()

    @property
    def _publisher_name(self) -> str:
        """
        The gateway's name, and the id of the client that a stream is opened for.
        """
        client_id = (self.client_id or "")[:_NAME_CHARS]
        return f"{self._context.client}/{client_id}" if client_id else self._context.client

    async def _until_gone(self) -> None:
        """
        Wait until the broker has noticed the end of the broken stream: what was sent by it may still enter the log.
        """
        context = self._context
        deadline = context.clock.seconds() + _GONE_S
        while context.clock.seconds() < deadline:  # the stream may be another program's
            assignment = await context.assignment()
            if not await context.rpc.has_publisher(context.topic, assignment):
                break
            await deferLater(context.clock, _LOOK_S)

    async def _finish(self, send_window: SendWindow) -> None:
        """
        End the stream once all that was sent is in the log. When the last publisher is gone, the broker writes what it
        has into files.
        """
        self._send_window, finished = None, Deferred[None]()
        self._finished = finished
        send_window.stream.finish()
        await within(self._context.clock, _FINISH_S, finished)
        self._finished = None
        send_window.stream.close()
        self._may_unload_until = self._context.clock.seconds() + _FINISH_S

    def _answered(self, message_count: int, last_message: int) -> None:
        if self._finished or self._closed:  # the files say how far it came
            return
        try:
            progressed = self.in_flight.answered(message_count, last_message)
        except OffsetsShifted as error:
            self._count_again(error)
            return
        if progressed:
            self._progressed()
        self._send_more()

    def _send_more(self) -> None:
        """
        Send what waited for answers. If it cannot be read, another stream tries again.
        """
        send_window = self._send_window
        if send_window:
            try:
                send_window.send_waiting(self.in_flight)
            except (*CLUSTER_ERRORS, KafkaError):
                self._send_window = None
                send_window.stream.close()
                if self._connecting is None:
                    self._connect()

    def _has_unflushed(self) -> bool:
        try:
            return next(self._batches_from(self.in_flight.flushed), None) is not None
        except (*CLUSTER_ERRORS, KafkaError):  # it is there, and cannot be read now
            return True

    def _count_again(self, error: OffsetsShifted) -> None:
        """
        Read the files, which show what arrived. Batches contain their offsets, whatever SeaweedMQ counts; records have
        got the offsets of others.
        """
        if self._context.format.batched:
            if not self._connecting:
                self._log.warn(STREAM_BROKEN, name=self._name, error=error)
                self._connect()
        elif self._send_window:
            send_window, self._send_window = self._send_window, None
            send_window.stream.finish()  # a cancelled stream may leave a gap
            self._shifted(error)

    def _broken(self, stream: PublishStream, error: RpcError) -> None:
        if self._finished:
            self._finished.callback(None)
            return
        send_window = self._send_window
        if send_window is None or stream is not send_window.stream:
            return
        self._send_window = None
        self._log.info("{name}: the stream to its broker failed: {error}", name=self._name, error=error)
        if send_window.is_behind or self.in_flight.has_own:  # unflushed messages of ours may be lost
            self._connect()

    def _given_up(self, failure: Failure) -> None:
        self._connecting = None
        if failure.check(CancelledError) is None:
            self._log.failure(PUBLISHING_STOPPED, failure, name=self._name)
