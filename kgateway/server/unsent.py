"""
Answers of a connection that are started and not sent, in the order of their requests.
"""

from collections import deque
from collections.abc import Callable

from kgateway.server.budget import Reservation
from kgateway.server.pending import Pending

STARTED_MAX = 1_000  # requests of one connection that are started and unanswered


class Unsent(deque[Pending]):
    """
    The first one leaves first; the last one may hold back what comes after it.
    """

    @property
    def next_may_start(self) -> bool:
        """
        Whether one more request may.
        """
        if not self:
            return True
        last = self[-1]
        return (last.ready or last.next_may_start) and len(self) < STARTED_MAX

    def expect(self, answer: Pending, wake: Callable[[], None], reservation: Reservation | None = None) -> None:
        """
        Wait for an answer. Till then the request may point into its frame, so the bytes of that stay reserved; one that
        polls is about no records.
        """

        def ready() -> None:
            if reservation:
                reservation.release()
            wake()

        self.append(answer)
        answer.call_when_ready(ready if reservation else wake)

    def cut_short(self) -> None:
        """
        End long polls with what there is.
        """
        for answer in self:
            answer.cut_short()
