"""
Sends batches by one stream to the broker, no more of them at once than the broker is quick enough for: what has no room
waits where it is held, and is taken from there when answers have come.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred, succeed

from kgateway.broker.seaweedmq.in_flight import InFlight
from kgateway.broker.seaweedmq.publisher import Publisher


class Outgoing(NamedTuple):
    """
    A batch on its way.
    """

    base_offset: int
    end: int
    messages: Sequence[bytes]
    time_ms: int  # when it was made to be published at once
    max_timestamp: int  # of its records, as its header says


Held = Callable[[int], Iterator[Outgoing]]  # what was appended from an offset of Kafka's on


class Sending:
    """
    By a publisher that is open. It begins with what is held already.
    """

    def __init__(self, publisher: Publisher, held: Held, window: Callable[[], int]) -> None:
        self.publisher = publisher
        self.is_behind = True  # whether some of what is held was not sent yet
        self._held = held
        self._window = window  # how many bytes may wait for answers
        self._all_sent: Deferred[None] = succeed(None)

    def send(self, batch: Outgoing, in_flight: InFlight) -> None:
        """
        Send what was appended just now, if it is its turn.
        """
        if not self.is_behind and self._has_room(in_flight):
            self._send(batch, in_flight)
        else:
            self.is_behind = True

    def go_on(self, in_flight: InFlight) -> None:
        """
        Send what is held and was not sent yet, as far as there is room.
        """
        if not self.is_behind:
            return
        held = self._held(in_flight.end)
        while self._has_room(in_flight):
            batch = next(held, None)
            if batch is None:
                self.is_behind = False
                break
            self._send(batch, in_flight)
        if not (self.is_behind or self._all_sent.called):
            self._all_sent.callback(None)

    def all_sent(self) -> Deferred[None]:
        """
        Fires when nothing waits to be sent.
        """
        if self.is_behind and self._all_sent.called:
            self._all_sent = Deferred()
        return self._all_sent

    def _has_room(self, in_flight: InFlight) -> bool:
        return in_flight.unanswered_bytes < self._window()

    def _send(self, batch: Outgoing, in_flight: InFlight) -> None:
        base_offset, end, messages, time_ms, max_timestamp = batch
        in_flight.sent(base_offset, end, len(messages), time_ms, max_timestamp, sum(map(len, messages)))
        self.publisher.send(messages)
