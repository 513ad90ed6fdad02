"""
Finds where the log of a partition ends, whatever has become of its broker.

The files tell, once the broker has written all that it has in memory; its two counters must agree with them.

A broker that was killed continues from a checkpoint that may be ahead of the files, or behind them: it leaves a hole,
or gives an offset twice. So before a partition is published to, the checkpoint is made to say what the last file does.
A broker that has loaded the partition does not read the checkpoint again, so changing it does no harm; one that loads
the partition later continues from the right number.
"""

from struct import Struct
from typing import NamedTuple

from twisted.internet.task import deferLater
from twisted.logger import Logger

from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd
from kgateway.broker.seaweedmq.layout.topic_paths import CHECKPOINT
from kgateway.broker.seaweedmq.partitions.lost_messages import end_after_loss
from kgateway.broker.seaweedmq.partitions.partition_context import PartitionContext
from kgateway.broker.seaweedmq.tail.tail import BrokerTail
from kgateway.broker.seaweedmq.tail.tail_position import TailPosition
from kgateway.broker.seaweedmq.topics.broker_rpc import FLUSHED_S
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.log_messages import LOG_END_DIFFERS

_LAST, _FIRST = "offset_max", "offset_min"
_OFFSET = Struct(">q")
_NONE = -1
_LOOK_S = 0.1
_log = Logger()


class _Waiting(NamedTuple):
    """
    What a broker has in memory that is to come into files.
    """

    next_message: int  # after it
    since: float  # when the broker has said so


async def first_log_end(context: PartitionContext) -> FilesEnd:
    """
    The end of a partition that is opened, after what consumers have got, even if it is lost. If others publish to the
    partition, messages that their broker has in memory may follow.
    """
    files, shown = context.files, await context.side_files.shown_end()
    files.lead(context.check_lease, lambda: shown, lambda _: None)
    if context.is_removed:
        await files.refresh()
        return await files.end(EARLIEST_OFFSET)
    if context.is_foreign:
        await files.refresh()
        end = await files.end(EARLIEST_OFFSET)
        broker = BrokerTail(context.rpc, context.topic, context.assignment, context.clock)
        is_known = shown is None or shown.offset <= end.offset
        position = TailPosition(end.next_message, end.ts_ns)
        if is_known and await broker.after(position, await broker.next_offset()):
            return end
    flushed = await flushed_log_end(context, is_shared=context.is_foreign)
    return await end_after_loss(files, flushed, shown, context.check_lease)


async def flushed_log_end(
    context: PartitionContext, start: int = EARLIEST_OFFSET, *, is_shared: bool = False
) -> FilesEnd:
    """
    The end of the partition, once all that its broker has in memory is in files; if the partition is shared with
    programs that may publish all the time, once all is in files that the broker had when it was first asked.
    """
    clock, files = context.clock, context.files
    waiting: _Waiting | None = None
    while True:
        looked_at = clock.seconds()
        await files.refresh()
        end = await files.end(start)
        await repair_counters(await context.seaweed.filer(), files.folders[-1].path, end)
        if waiting and is_shared and end.next_message >= waiting.next_message:
            return end
        assignment = await context.assignment()
        next_message = await context.rpc.next_offset(context.topic, assignment)
        if next_message == end.next_message:
            return end
        if next_message < end.next_message:  # it was asked before it could read where the files end
            return _counted(context, end, next_message)
        if waiting is None or next_message < waiting.next_message:  # a killed broker has lost some of them
            waiting = _Waiting(next_message, clock.seconds())
        elif looked_at >= waiting.since + FLUSHED_S:  # they never were in files, or are gone: a hole
            return _counted(context, end, next_message)
        await deferLater(clock, _LOOK_S)


def _counted(context: PartitionContext, end: FilesEnd, next_message: int) -> FilesEnd:
    """
    The end if the broker's counter differs from the files, which matters only for messages without Kafka offsets.
    """
    difference = next_message - end.next_message
    name = f"{context.topic}-{context.index}"
    _log.warn(LOG_END_DIFFERS, name=name, next_message=next_message, end=end.next_message)
    if context.format.numbered:
        return end._replace(next_message=next_message, leaves_out=True)
    if difference < 0:
        reason = f"{name}: its broker would assign offsets again, from {next_message} on; restart it"
        raise RpcError(Status.UNAVAILABLE, reason)
    return end._replace(offset=end.offset + difference, next_message=next_message, gap=difference, leaves_out=True)


async def repair_counters(filer: Filer, folder: str, end: FilesEnd) -> None:
    """
    Make a broker that loads the partition in this folder continue where its files end.
    """
    next_message = end.next_message
    if end.last_file:
        await _repair_file(filer, *end.last_file, next_message - 1)
    checkpoint = await filer.entry(f"{folder}/{CHECKPOINT}")
    # A new partition has no checkpoint for some seconds. Brokers read only one whose bytes are inline in its entry.
    before = _offset(checkpoint.content) if checkpoint else _NONE
    if before == next_message - 1:
        return
    _log.info(
        "{folder}: the checkpoint says that {before} is the last offset, the files say {last}; the files are used",
        folder=folder,
        before=before,
        last=next_message - 1,
    )
    await filer.write(f"{folder}/{CHECKPOINT}", _OFFSET.pack(next_message - 1))


async def _repair_file(filer: Filer, path: str, first: int, last: int) -> None:
    """
    Make the attributes of the last file say which messages it has; a broker numbers what it loads by them.
    """
    entry = await filer.entry(path)
    if entry is None or entry.extended.get(_LAST) == _OFFSET.pack(last):
        return
    entry.extended[_FIRST] = _OFFSET.pack(first)
    entry.extended[_LAST] = _OFFSET.pack(last)
    await filer.update(path, entry)


def _offset(content: bytes) -> int:
    return int(_OFFSET.unpack(content)[0]) if len(content) == _OFFSET.size else _NONE
