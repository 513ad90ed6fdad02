"""
Content of a file on a machine that may lose power.

A file is its content at the last sync, and the list of operations since. The kernel may write any page at any time,
so after a crash each part of the file is as it was at some moment since the sync, each at a moment of its own, and
the size is that of yet another. A part that no operation wrote is zeroes.

A failed sync marks the pages as clean all the same, as in Linux: their content is never written, not even by a later
sync that succeeds.
"""

from random import Random

UNITS = (512, 4096)  # a disk writes a sector wholly or not at all, a kernel tries to write pages
_ONE_MOMENT = 0.3  # how often a crash leaves the whole file as it was at one moment, cut cleanly

Doing = bytes | int | range  # appended bytes, the size of a truncation, or a range that is written again


class Content:
    """
    The content of a file, as it is visible and as it is durable.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.visible = bytearray(data)
        self._durable = bytes(data)
        self._doings: list[Doing] = []  # since the sync that made `_durable`
        self._forgotten = 0  # how many operations there were before these
        self._never: list[tuple[int, int]] = []  # ranges that a failed sync has lost

    def append(self, data: bytes) -> None:
        self.visible += data
        self._doings.append(data)

    def truncate(self, size: int) -> None:
        del self.visible[size:]
        self._doings.append(size)
        self._never = [(start, min(end, size)) for start, end in self._never if start < size]

    def write_again(self, start: int, end: int) -> None:
        """
        Mark visible bytes to be written after all.
        """
        left = [(first, min(last, start)) for first, last in self._never if first < start]
        right = [(max(first, end), last) for first, last in self._never if last > end]
        self._never = left + right
        self._doings.append(range(start, end))

    def begin_sync(self) -> tuple[int, bytes]:
        """
        Begin a sync: it covers the present content, and may miss what is written meanwhile.
        """
        return self._forgotten + len(self._doings), bytes(self.visible)

    def end_sync(self, begun: tuple[int, bytes]) -> None:
        """
        Make durable what was there when this sync began.
        """
        number, picture = begun
        if number < self._forgotten:
            return  # a later sync was faster
        self._durable = self._without_the_never(bytearray(picture))
        del self._doings[: number - self._forgotten]
        self._forgotten = number

    def fail_sync(self) -> None:
        """
        Give up everything that is not durable.
        """
        size = len(self._durable)
        for doing in self._doings:
            if isinstance(doing, range):
                self._never.append((doing.start, doing.stop))
            elif isinstance(doing, bytes):
                self._never.append((size, size + len(doing)))
                size += len(doing)
            else:
                size = doing
                self._never = [(start, min(end, size)) for start, end in self._never if start < size]

    def after_crash(self, chance: Random) -> bytes:
        """
        A content that the machine may find after a crash.
        """
        last = len(self._doings)
        if not last:
            return self._durable
        if chance.random() < _ONE_MOMENT:
            moment = chance.randint(0, last)
            return self._without_the_never(bytearray(self._at(moment)))
        found = bytearray(self._size(chance))
        unit, kept = chance.choice(UNITS), chance.choice((0.0, 0.5, 0.9, 1.0))
        chosen: dict[int, list[int]] = {}
        for start in range(0, len(found), unit):
            moment = last if chance.random() < kept else chance.choice((0, chance.randint(0, last)))
            chosen.setdefault(moment, []).append(start)
        for moment, starts in chosen.items():
            then = self._at(moment)
            for start in starts:
                part = then[start : min(start + unit, len(found))]
                found[start : start + len(part)] = part
        return self._without_the_never(found)

    def _at(self, moment: int) -> bytes | bytearray:
        if moment == len(self._doings):
            return self.visible
        then = bytearray(self._durable)
        for doing in self._doings[:moment]:
            if isinstance(doing, bytes):
                then += doing
            elif isinstance(doing, int):
                del then[doing:]
        return then

    def _size(self, chance: Random) -> int:
        size = len(self._durable)
        sizes = [size]
        for doing in self._doings:
            if isinstance(doing, bytes):
                size += len(doing)
            elif isinstance(doing, int):
                size = doing
            sizes.append(size)
        return chance.choice((sizes[0], sizes[-1], chance.choice(sizes), chance.randint(min(sizes), max(sizes))))

    def _without_the_never(self, found: bytearray) -> bytes:
        for start, end in self._never:
            stop = min(end, len(found))
            if start < stop:
                found[start:stop] = self._durable[start:stop].ljust(stop - start, b"\0")
        return bytes(found)
