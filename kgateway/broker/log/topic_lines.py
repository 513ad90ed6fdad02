"""
The lines of the topic journal, and which of them a crash can have left unfinished.

    CRC SURE CHANGE

    CRC         CRC-32C of the rest of the line, 8 hexadecimal digits
    SURE        all before this position of the file was synced before this line was written
    CHANGE      of a topic: a line of JSON in ASCII (topic_journal.py)

All that was acknowledged was synced. So what is not whole at the end of the file is a change that was not finished, and
is left out; or it is damaged, and only the operator can know what it was. How the last process ended tells them apart:

    it stopped in good order    there is nothing that is not whole
    it died                     the file ends in the middle of a line: its newline was written last
    the machine died            that, or sectors of what was not synced are missing, and read as zeroes

What looks otherwise is damaged; so is what has a line behind it that says that this part was sure.
"""

import json
import re
from io import BytesIO
from pathlib import Path

from crc32c import crc32c

from kgateway.broker.log.folder_error import FolderError
from kgateway.broker.log.start_file import LastEnd

_SECTOR = 512
_BEGUN = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} [0-9]*|[0-9a-f]{8} [0-9]+ ([ -~]*)")
_ZEROES = re.compile(rb"\0+")
_SURE = re.compile(rb"[0-9]{1,19}")


def line(sure: int, change: bytes) -> bytes:
    """
    The line of a change.
    """
    rest = b"%d %s" % (sure, change)
    return b"%08x %s\n" % (crc32c(rest), rest)


def changes(path: Path, data: bytes, last_end: LastEnd) -> tuple[list[bytes], int]:
    """
    Those of the lines that are whole, and where these end; a FolderError where others were whole once.
    """
    found, end, unfinished = list[bytes](), 0, 0
    for number, here in enumerate(BytesIO(data), 1):
        whole = _parsed(here)
        if whole is None:
            unfinished = unfinished or number
        elif not unfinished:
            found.append(whole[1])
            end += len(here)
        elif whole[0] > end:
            raise _damaged(path, unfinished, "it was whole once, for later ones are")
    if unfinished and last_end is LastEnd.IN_ORDER:
        raise _damaged(path, unfinished, "it was whole once, for the gateway was stopped in good order")
    if unfinished and not _from_a_crash(data, end, last_end):
        raise _damaged(path, unfinished, "no crash leaves it like this")
    return found, end


def _parsed(here: bytes) -> tuple[int, bytes] | None:
    """
    What was sure, and the change; `None` where the line is not whole.
    """
    crc, _, rest = here.removesuffix(b"\n").partition(b" ")
    sure, _, change = rest.partition(b" ")
    if not here.endswith(b"\n") or crc != b"%08x" % crc32c(rest) or not _SURE.fullmatch(sure):
        return None
    return int(sure), change


def _from_a_crash(data: bytes, end: int, last_end: LastEnd) -> bool:
    """
    Whether what is behind this position was never synced.
    """
    first = data[end:].partition(b"\n")[0]
    if end + len(first) == len(data) and _is_begun(first):
        return True
    return last_end is LastEnd.WITH_THE_MACHINE and _misses_sectors(data, end, end + len(first))


def _is_begun(here: bytes) -> bool:
    """
    Whether this is how a line begins, and not a whole one with something else in the place of its newline.
    """
    begun = _BEGUN.fullmatch(here)
    if begun is None:
        return False
    change = (begun[1] or b"").decode("ascii")
    try:
        return json.JSONDecoder().raw_decode(change)[1] == len(change)
    except (ValueError, RecursionError):
        return True


def _misses_sectors(data: bytes, start: int, stop: int) -> bool:
    """
    Whether there are zeroes in this part, and all of them where sectors are: the first one may have been sure up to
    the start.
    """
    runs = [found.span() for found in _ZEROES.finditer(data, start, stop)]
    begins = all(first == start or first % _SECTOR == 0 for first, _ in runs)
    return bool(runs) and begins and all(last == len(data) or last % _SECTOR == 0 for _, last in runs)


def _damaged(path: Path, number: int, why: str) -> FolderError:
    return FolderError(
        f"line {number} of {path} is damaged, and {why}; bring the file back from a copy, or remove the line: "
        "the topic that it is about is then as it was before, and put aside if it was new"
    )
