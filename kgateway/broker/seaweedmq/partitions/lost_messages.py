"""
Offsets after a broker was killed, if consumers have got messages that only it had in memory.

SeaweedMQ gives the numbers of such messages to others. Kafka's offsets are not given again, or a consumer that has read
up to one of them would miss the other messages. So from the first file on that was begun after the last message that
consumers have, Kafka's offsets are shifted, unless that file shows that the numbers continue.
"""

from typing import NamedTuple

from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS


class ShownEnd(NamedTuple):
    """
    The end of what consumers can have got.
    """

    offset: int  # Kafka's
    ts_ns: int  # of the last message before it


async def count_after_loss(files: PartitionFiles, shown: ShownEnd, precondition: Precondition) -> bool:
    """
    Shift the offsets of a file that gives them again, and of those after it. Returns whether there is one.
    """
    found = await files.first_after(shown.ts_ns)
    if found is None:
        return False
    file, message = found
    if message + file.folder.shift >= shown.offset:
        return False
    await files.add_shift(file, shown.offset - message, precondition)
    await files.refresh()
    return True


async def end_after_loss(
    files: PartitionFiles, end: FilesEnd, shown: ShownEnd | None, precondition: Precondition
) -> FilesEnd:
    """
    Where a partition ends that consumers had got up to `shown` when its broker did not answer.
    """
    if shown is None:
        return end
    if await count_after_loss(files, shown, precondition):
        return await files.end(shown.offset)
    if end.offset >= shown.offset:
        return end
    await files.add_shift_at(shown.ts_ns + SECOND_NS, shown.offset - end.next_message, precondition)
    return end._replace(offset=shown.offset)
