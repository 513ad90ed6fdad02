"""
Offsets after a broker was killed, if consumers have got messages that only it had in memory.

SeaweedMQ gives the numbers of such messages to others. Kafka's offsets are not given again, or a consumer that has read
up to one of them would miss the other messages. Files that were begun after the last message that consumers have are
read with offsets after it (files/offset_continuity.py). If there is none yet, its offsets are chosen here.
"""

from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweedmq.files.offset_continuity import ShownEnd
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS


async def end_after_loss(
    files: PartitionFiles, end: FilesEnd, shown: ShownEnd | None, precondition: Precondition
) -> FilesEnd:
    """
    Where a partition ends that consumers had got up to `shown` when its broker did not answer.
    """
    if shown is None or end.offset >= shown.offset:
        return end
    await files.add_shift_at(shown.ts_ns + SECOND_NS, shown.offset - end.next_message, precondition)
    return end._replace(offset=shown.offset)
