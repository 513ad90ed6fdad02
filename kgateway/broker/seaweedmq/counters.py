"""
The two counters that a broker of SeaweedMQ keeps for a partition, brought back to where its files end.

A broker that was killed goes on counting from a checkpoint that may be ahead of the files, or behind them: it leaves a
hole, or gives an offset twice. So before a partition is published to, the checkpoint is made to say what the last file
does. A broker that has the partition in memory has read the checkpoint before, and is not disturbed; one that
has not begins right.
"""

from struct import Struct

from twisted.logger import Logger

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweedmq.history import End
from kgateway.broker.seaweedmq.layout import CHECKPOINT

_LAST, _FIRST = "offset_max", "offset_min"
_OFFSET = Struct(">q")
_NONE = -1
_log = Logger()


async def repair_counters(filer: Filer, folder: str, end: End) -> None:
    """
    Let a broker that loads the partition in this folder go on where its files end.
    """
    next_message = end.next_message
    if end.last_file:
        await _repair_file(filer, *end.last_file, next_message - 1)
    checkpoint = await filer.entry(f"{folder}/{CHECKPOINT}")
    # It is first written after some seconds; and a broker finds what it says only inside its entry.
    before = _offset(checkpoint.content) if checkpoint else _NONE
    if before == next_message - 1:
        return
    _log.info(
        "{folder}: the checkpoint says that {before} is the last offset, the files say {last}; the files are right",
        folder=folder,
        before=before,
        last=next_message - 1,
    )
    await filer.write(f"{folder}/{CHECKPOINT}", _OFFSET.pack(next_message - 1))


async def _repair_file(filer: Filer, path: str, first: int, last: int) -> None:
    """
    Let the attributes of the last file say which messages it has; a broker numbers what it loads by that.
    """
    entry = await filer.entry(path)
    if entry is None or entry.extended.get(_LAST) == _OFFSET.pack(last):
        return
    entry.extended[_FIRST] = _OFFSET.pack(first)
    entry.extended[_LAST] = _OFFSET.pack(last)
    await filer.update(path, entry, {})


def _offset(content: bytes) -> int:
    return int(_OFFSET.unpack(content)[0]) if len(content) == _OFFSET.size else _NONE
