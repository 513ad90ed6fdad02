"""
How often brokers are asked for new messages.
"""

_AT_LEAST_S, _AT_MOST_S = 0.01, 0.1
_OF_IDLE_TIME = 0.01
_PER_SECOND = 200  # requests for all partitions together
_FRUITLESS_S, _FRUITLESS_MAX_S = 0.02, 1.0


class TailPace:
    """
    The pace of all partitions of a gateway for which consumers wait. A partition is asked for less often the longer
    nothing has come, by which a message becomes later by a hundredth of the time that its consumer has waited; and less
    often the more partitions there are, so that they take a bounded part of the gateway's time.
    """

    def __init__(self) -> None:
        self._active = 0

    def begin(self) -> None:
        """
        Count a partition for which a consumer waits.
        """
        self._active += 1

    def end(self) -> None:
        self._active -= 1

    def pause_s(self, idle_s: float, fruitless: int) -> float:
        """
        Seconds until the next request: so long after the last message, and after as many requests whose responses did
        not show what follows.
        """
        pause_s = max(_AT_LEAST_S, min(_OF_IDLE_TIME * idle_s, _AT_MOST_S), self._active / _PER_SECOND)
        if fruitless:
            pause_s = max(pause_s, min(_FRUITLESS_S * 2.0 ** min(fruitless, 10), _FRUITLESS_MAX_S))
        return pause_s
