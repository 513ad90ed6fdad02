"""
Finds the messages that follow a known one, in what a broker has in memory.

A broker returns messages without their offsets, and only says which offset follows the last one. It finds a window of
its memory by counting messages, and then leaves out those whose offsets are smaller than the one that was asked for.
After a broker was killed or has loaded a partition anew, the two counts may differ. What is not in memory it reads from
files, where it counts once more; what follows in memory may have the offsets of messages in files, and is left out. So
our rule is: believe a response only if it has the known message, which is recognized by its time, because no two
messages of a partition have the same, or if it is out of the newest window, which is in memory. If it is not both, the
two counts of the broker must agree. And believe it only if the offsets say that as many messages
follow as are there. If they do not, messages are in another order than that of their offsets, and one may have been
left out, unless the request began well before the known message.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kgateway.broker.seaweed.protos.messaging_pb2 import DataMessage, FetchMessageResponse
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage

NOTHING_BEFORE = 0  # as the time of a message


class TailPosition(NamedTuple):
    next_message: int  # SeaweedMQ's offset of the first message that is not known
    ts_ns: int | None  # of the one before it, if it is known

    def is_after_known(self, response: FetchMessageResponse) -> bool:
        """
        Whether the response has the known message.
        """
        if self.ts_ns is None:
            return False
        first = bisect_right(response.messages, self.ts_ns, key=_time)
        return first > 0 and response.messages[first - 1].ts_ns == self.ts_ns

    def is_in_newest(self, response: FetchMessageResponse, start: int) -> bool:
        """
        Whether the response to a request for messages from `start` on has the known message out of the newest window.
        """
        return response.log_start_offset <= start and self.is_after_known(response)

    def following(self, response: FetchMessageResponse, start: int, *, is_wide: bool) -> list[LoggedMessage]:
        """
        The messages from this position on in the response to a request for those from `start` on, which is well before
        the position if the request is wide; none if the response does not show that it has them.
        """
        found = response.messages
        is_newest = response.log_start_offset <= start  # window of the broker's memory
        said = response.next_offset - self.next_message
        if self.ts_ns is None:
            is_there = is_newest and response.log_start_offset > 0 and 0 < said <= len(found)
            return self._numbered(found[len(found) - said :]) if is_there else []
        first = bisect_right(found, self.ts_ns, key=_time)
        has_known = self.is_after_known(response)
        is_complete = said == len(found) - first or (is_wide and has_known)
        return self._numbered(found[first:]) if is_complete and (is_newest or has_known) else []

    def _numbered(self, found: Sequence[DataMessage]) -> list[LoggedMessage]:
        return [
            LoggedMessage(offset, message.ts_ns, message.key, message.value)
            for offset, message in enumerate(found, self.next_message)
        ]


def _time(message: DataMessage) -> int:
    return message.ts_ns
