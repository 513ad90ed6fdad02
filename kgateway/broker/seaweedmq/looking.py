"""
Finds out where the log of a partition ends, whatever has become of its broker.

The files tell, once the broker has written all that it has in memory; what it counts must agree with them.
"""

from twisted.internet.task import deferLater
from twisted.logger import Logger

from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweedmq.counters import repair_counters
from kgateway.broker.seaweedmq.history import End
from kgateway.broker.seaweedmq.link import Link
from kgateway.cluster.partition import EARLIEST_OFFSET

FLUSHED_S = 15.0  # three times the interval in which a broker flushes, where nobody has set it
_LOOK_S = 0.1
_log = Logger()


async def look(link: Link, start: int = EARLIEST_OFFSET) -> End:
    """
    Where the partition ends, once all that its broker has in memory is in files.
    """
    clock, history = link.clock, link.history
    deadline = clock.seconds() + FLUSHED_S
    while True:
        await history.refresh()
        end = await history.end(start)
        await repair_counters(await link.seaweed.filer(), history.folders[-1].path, end)
        assignment = (await link.messaging.assignments(link.topic))[link.index]
        next_message = await link.messaging.next_offset(link.topic, assignment)
        if next_message == end.next_message:
            return end
        if next_message < end.next_message:  # it was asked before it could read where the files end
            return _counted(link, end, next_message)
        if clock.seconds() >= deadline:  # they never were, or are no more: a hole
            return _counted(link, end, next_message)
        await deferLater(clock, _LOOK_S)


def _counted(link: Link, end: End, next_message: int) -> End:
    """
    Where the log goes on, for a broker that counts otherwise than the files: that matters to messages without numbers.
    """
    difference = next_message - end.next_message
    name = f"{link.topic}-{link.index}"
    _log.warn(
        "{name}: its broker goes on with message {next_message}, and the files end before {end}",
        name=name,
        next_message=next_message,
        end=end.next_message,
    )
    if link.form.numbered:
        return end._replace(next_message=next_message)
    if difference < 0:
        reason = f"{name}: its broker would give offsets again, from {next_message} on; start it again"
        raise RpcError(Status.UNAVAILABLE, reason)
    return end._replace(offset=end.offset + difference, next_message=next_message, gap=difference)
