"""
Keeps a partition published, whatever becomes of its broker.

A stream is opened when there is something to publish. Each time before that the files of the partition are looked at:
they say what has come, and everything behind that is published again, in order, out of what the gateway holds. So what
a broker had in its memory when it was killed comes back under the same offsets.
"""

from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.patience import at_most
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweedmq.history import End
from kgateway.broker.seaweedmq.in_flight import InFlight, Shifted
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.link import Link
from kgateway.broker.seaweedmq.looking import look
from kgateway.broker.seaweedmq.publisher import Publisher
from kgateway.broker.seaweedmq.sending import Held, Outgoing, Sending
from kgateway.wire.errors import KafkaError

_BACK_S = 5.0  # for a broker that is out, before nothing is published any more
_FINISH_S = 10.0
_GONE_S = 5.0
_UNLOADED_S = 0.3  # from when a broker has written all of a partition that nobody publishes to, until it takes messages
_LATELY_S = 2.0
_LOOK_S = 0.1
_NAME_CHARS = 100  # of a client's id, which may be of any length
_DELAYS_S = (0.1, 0.2, 0.5, 1.0, 2.0)


class Publishing:
    """
    Publishes batches, and tells how far they have come.
    """

    _log = Logger()

    def __init__(
        self,
        link: Link,
        end: End,
        held: Held,
        window: Callable[[], int],
        moved: Callable[[], None],
        shifted: Callable[[Shifted], None],
    ) -> None:
        self._link = link
        self.in_flight = self._begun(end)
        self.client_id: str | None = None  # of the client whose batch came last
        self._name = f"{link.topic}-{link.index}"
        self._held = held
        self._window = window
        self._moved = moved
        self._shifted = shifted
        self._sending: Sending | None = None
        self._connecting: Deferred[None] | None = None
        self._was_open = False
        self._settled_at = link.clock.seconds() + _LATELY_S if end.last_file else 0.0
        self._closed = False
        self._paused = False
        self._finished: Deferred[None] | None = None  # the stream, of which nothing more is awaited than its end

    def publish(self, batch: Outgoing) -> None:
        """
        Publish a batch, which `held` gives from now on, too.
        """
        if self._sending:
            self._sending.send(batch, self.in_flight)
        elif self._connecting is None and not self._paused:
            self._connect()

    async def pause(self) -> End:
        """
        Publish nothing until `resume`; where the files end then.
        """
        if self._connecting:
            await at_most(self._link.clock, _BACK_S, self._connecting)
        self._paused = True
        if self._connecting:
            await self._connecting
        if self._sending:
            await at_most(self._link.clock, _FINISH_S, self._sending.all_sent())
        if self._sending:
            await self._finish(self._sending)
        end = await look(self._link)
        self._go_on(end)
        self._moved()
        return end

    def resume(self) -> None:
        """
        Publish what has come meanwhile, and what comes.
        """
        self._paused = False
        if self._is_holding():
            self._connect()

    def follow(self, end: End) -> bool:
        """
        Go on where the files end, behind what others have published; not while anything of ours is on its way.
        """
        is_behind = self._sending is not None and self._sending.is_behind
        if self._connecting or is_behind or not self.in_flight.is_empty:
            return False
        if end.next_message < self.in_flight.next_message:
            return False
        self._go_on(end)
        return True

    def close(self) -> None:
        """
        Publish nothing any more.
        """
        self._closed = True
        if self._connecting:
            self._connecting.cancel()
        if self._sending:
            self._sending.publisher.close()
            self._sending = None

    def _go_on(self, end: End) -> None:
        """
        Count anew from where the files end.
        """
        self.in_flight.in_files_to(end.offset - end.gap)
        self.in_flight = self._begun(end)

    def _begun(self, end: End) -> InFlight:
        ledger = self._link.ledger
        return InFlight(end.offset, end.next_message, *([ledger.noted] if ledger else []))

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
            except (*CLUSTERS_ERRORS, KafkaError) as error:
                if not attempts:
                    problem = "{name} cannot be published to, and is tried again and again: {error}"
                    self._log.warn(problem, name=self._name, error=error)
                delay = _DELAYS_S[min(attempts, len(_DELAYS_S) - 1)]
                attempts += 1
                await deferLater(self._link.clock, delay)
            else:
                if attempts:
                    self._log.info("{name} is published to again", name=self._name)
                break
        self._connecting = None

    async def _open(self) -> None:
        link = self._link
        if self._sending:
            await self._finish(self._sending)
        if self._was_open:
            await self._until_gone()
        end = await look(link)
        if end.gap and any(batch.base_offset < end.offset for batch in self._held(end.offset - end.gap)):
            lost = Shifted(f"messages before {end.next_message} are lost, and nothing can take their offsets")
            link.clock.callLater(0, self._shifted, lost)  # which ends what runs here
            return
        if link.clock.seconds() < self._settled_at:  # what comes while it is unloaded gets an offset, and is lost
            await deferLater(link.clock, _UNLOADED_S)
        publisher = Publisher(self._answered, self._broken, link.clock)
        assignment = (await link.messaging.assignments(link.topic))[link.index]
        try:
            await link.messaging.publish(link.topic, assignment, publisher, self._publisher_name)
            link.demand_ownership()
        except BaseException:
            publisher.close()
            raise
        self._go_on(end)
        self._sending, self._was_open = Sending(publisher, self._held, self._window), True
        self._sending.go_on(self.in_flight)
        self._moved()

    @property
    def _publisher_name(self) -> str:
        """
        Of a stream that is opened: the gateway's, and the id of the client it is opened for.
        """
        client_id = (self.client_id or "")[:_NAME_CHARS]
        return f"{self._link.client}/{client_id}" if client_id else self._link.client

    async def _until_gone(self) -> None:
        """
        Wait for the end of the stream that broke: what was sent by it may still come into the log.
        """
        link = self._link
        deadline = link.clock.seconds() + _GONE_S
        while link.clock.seconds() < deadline:  # it may be somebody else's
            assignment = (await link.messaging.assignments(link.topic))[link.index]
            if not await link.messaging.has_publisher(link.topic, assignment):
                break
            await deferLater(link.clock, _LOOK_S)

    async def _finish(self, sending: Sending) -> None:
        """
        End the stream once all that was sent is in the log. When the last publisher is gone, the broker writes what it
        has into files.
        """
        self._sending, finished = None, Deferred[None]()
        self._finished = finished
        sending.publisher.finish()
        await at_most(self._link.clock, _FINISH_S, finished)
        self._finished = None
        sending.publisher.close()
        self._settled_at = self._link.clock.seconds() + _FINISH_S

    def _answered(self, messages: int, last_message: int) -> None:
        if self._finished or self._closed:  # the files say how far it has come
            return
        try:
            moved = self.in_flight.answered(messages, last_message)
        except Shifted as error:
            self._count_again(error)
            return
        if moved:
            self._moved()
        self._send_more()

    def _send_more(self) -> None:
        """
        What waits for answers may go. Where it cannot be read it is tried again and again, by another stream.
        """
        sending = self._sending
        if sending:
            try:
                sending.go_on(self.in_flight)
            except (*CLUSTERS_ERRORS, KafkaError):
                self._sending = None
                sending.publisher.close()
                if self._connecting is None:
                    self._connect()

    def _is_holding(self) -> bool:
        try:
            return next(self._held(self.in_flight.flushed), None) is not None
        except (*CLUSTERS_ERRORS, KafkaError):  # it is there, and cannot be read just now
            return True

    def _count_again(self, error: Shifted) -> None:
        """
        The files must say what there is. Batches say themselves where they belong, whatever SeaweedMQ counts; records
        have the offsets of others now.
        """
        if self._link.form.batched:
            if not self._connecting:
                self._log.warn("{name}: {error}; the files are looked at", name=self._name, error=error)
                self._connect()
        elif self._sending:
            sending, self._sending = self._sending, None
            sending.publisher.finish()  # what is broken off may leave a gap
            self._shifted(error)

    def _broken(self, publisher: Publisher, error: RpcError) -> None:
        if self._finished:
            self._finished.callback(None)
            return
        sending = self._sending
        if sending is None or publisher is not sending.publisher:
            return
        self._sending = None
        self._log.info("{name}: the stream to its broker broke: {error}", name=self._name, error=error)
        if sending.is_behind or not self.in_flight.is_empty:  # what was not flushed may be lost
            self._connect()

    def _given_up(self, failure: Failure) -> None:
        self._connecting = None
        if failure.check(CancelledError) is None:
            self._log.failure("{name} is not published any more", failure, name=self._name)
