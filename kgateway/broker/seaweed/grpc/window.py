"""
How much a peer may send before it is told to go on.
"""


class Window:
    """
    Of one stream, or of all. What was received is gone from here at once; the peer is told so when half of the window
    is used, so that it never stands still and seldom is told anything.
    """

    __slots__ = ("_enough", "_used")

    def __init__(self, size: int) -> None:
        self._enough = size // 2
        self._used = 0

    def take(self, size: int) -> int:
        """
        So much was received; how much more the peer is to be told that it may send.
        """
        self._used += size
        if self._used < self._enough:
            return 0
        freed, self._used = self._used, 0
        return freed
