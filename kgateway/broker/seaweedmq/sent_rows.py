"""
Makes rows of a ledger of what this gateway has published.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import sub

from kgateway.broker.seaweedmq.in_flight import Sent
from kgateway.broker.seaweedmq.ledger import RUN_MESSAGES, Ledger

_MILLISECOND_NS = 1_000_000
_SECOND_MS = 1000


def first_offset(sent: Sent, batched: bool) -> int:
    """
    Kafka's offset of the first record that was published.
    """
    return sent.base_offset if batched else sent.end - sent.messages


def add_rows(ledger: Ledger, found: Sequence[Sent]) -> None:
    """
    Add batches that follow one another, all at once; the first may be in the ledger in part.
    """
    if ledger.batched:
        bases, ends, messages, _, times_ms, max_timestamps = zip(*found, strict=True)
        times = [time_ms * _MILLISECOND_NS for time_ms in times_ms]
        ledger.append_batches(bases, messages, times, map(sub, ends, bases), max_timestamps)
        return
    head = found[0]
    head = head._replace(messages=min(head.messages, head.end - ledger.end))
    for _, end, message, count, time_ms, max_timestamp in _merged((head, *found[1:])):
        ledger.append(end - count, message + 1 - count, time_ms * _MILLISECOND_NS, count, max_timestamp)


def _merged(found: Iterable[Sent]) -> Iterator[Sent]:
    """
    What was published in one second, as if it had been one batch; a row tells no more of it.
    """
    last: Sent | None = None
    for sent in found:
        _, end, message, count, time_ms, max_timestamp = sent
        if (
            last
            and message - count == last.last_message
            and end - count == last.end
            and last.messages < RUN_MESSAGES
            and time_ms - last.time_ms < _SECOND_MS
        ):
            largest = max(last.max_timestamp, max_timestamp)
            last = Sent(last.base_offset, end, message, last.messages + count, last.time_ms, largest)
            continue
        if last:
            yield last
        last = sent
    if last:
        yield last
