"""
Opens a partition: finds out where its log begins and ends, under which epochs it was written, and who wrote to it last.
"""

from typing import NamedTuple

from kgateway.broker.epochs import Epochs
from kgateway.broker.producers import ProducerTable
from kgateway.broker.seaweedmq.history import End
from kgateway.broker.seaweedmq.link import Link
from kgateway.broker.seaweedmq.looking import look
from kgateway.cluster.partition import EARLIEST_OFFSET


class Opened(NamedTuple):
    """
    A partition as it was found.
    """

    start: int
    end: End
    epochs: Epochs
    producers: ProducerTable


async def opened(link: Link, epoch: int, producer_expiry_ms: int, now_ms: int) -> Opened:
    """
    Look at a partition whose records are there already.
    """
    start, end = await _start(link, await look(link))
    epochs = await link.beside.epochs()
    if epochs.assign(epoch, end.offset):
        await link.beside.keep_epochs(epochs)
    producers = ProducerTable(producer_expiry_ms)
    await _read_producers(link, producers, start, end.offset, now_ms)
    return Opened(start, end, epochs, producers)


def fresh(link: Link, epoch: int, producer_expiry_ms: int) -> Opened:
    """
    A partition that was made just now.
    """
    epochs = Epochs()
    epochs.assign(epoch, EARLIEST_OFFSET)
    newest = link.history.folders[-1]
    end = End(EARLIEST_OFFSET, newest.first_message)
    return Opened(EARLIEST_OFFSET, end, epochs, ProducerTable(producer_expiry_ms))


async def _start(link: Link, end: End) -> tuple[int, End]:
    """
    The first offset that is there, and is not deleted; and the end, which is not before it. Records that were deleted
    before they were in files may be lost: where messages say which of Kafka's offsets they have, no record gets theirs.
    """
    first = await link.history.start()
    deleted = await link.beside.log_start()
    if deleted > end.offset and link.form.numbered:
        end = end._replace(offset=deleted)
    elif deleted > end.offset:
        await link.beside.keep_log_start(end.offset)
    return end.offset if first is None else min(max(first, deleted), end.offset), end


async def _read_producers(link: Link, producers: ProducerTable, start: int, end: int, now_ms: int) -> None:
    """
    Take over what was kept last, and what the log says after it; messages without numbers do not tell of producers.
    """
    if not link.form.numbered:
        return
    kept = await link.beside.read_producers(producers, end, now_ms)
    for header in await link.history.producers(max(start, kept), end):
        producers.remember(header, header.base_offset, now_ms)
