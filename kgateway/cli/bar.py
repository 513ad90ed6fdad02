"""
How far a long work is, shown to who waits at a terminal.
"""

import sys

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_REDRAWN_S = 0.2
_BAR = 30


def size(count: float) -> str:
    """
    So many bytes.
    """
    power = 0
    while count >= 1024 and power < len(_UNITS) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.1f} {_UNITS[power]}" if power else f"{count:.0f} {_UNITS[0]}"


class Bar:
    """
    One line of a terminal, that goes when it is over.
    """

    def __init__(self) -> None:
        self._terminal = sys.stderr
        self._shown_s: float | None = None

    def show(self, done: int, of: int | None, elapsed_s: float) -> None:
        """
        Draw how many bytes of all are done, but not too often; of how many may not be known.
        """
        if not self._terminal.isatty() or elapsed_s - (self._shown_s or 0) < _REDRAWN_S:
            return
        self._shown_s = elapsed_s
        rate = f"{size(done / elapsed_s)}/s"
        if of is None:
            text = f"{size(done)}, {rate}"
        else:
            share = min(done / (of or 1), 1)
            full = round(share * _BAR)
            text = f"[{'#' * full}{'.' * (_BAR - full)}] {share:.0%}, {size(done)} of {size(of)}, {rate}"
        self._terminal.write(f"\r{text} \x1b[K")
        self._terminal.flush()

    def clear(self) -> None:
        """
        Make room for what is printed.
        """
        if self._shown_s:
            self._shown_s = 0
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()
