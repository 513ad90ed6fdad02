"""
A clock that takes one turn of the reactor at a time.
"""

from twisted.internet.task import Clock


class TurnClock(Clock):
    """
    In `advance`, Twisted's clock also makes calls that become due meanwhile. A reactor makes them in its next turn.
    """

    def turn(self) -> None:
        """
        Make the calls that are due now.
        """
        due = [call for call in self.calls if call.getTime() <= self.seconds()]
        self.calls = [call for call in self.calls if call not in due]
        for call in due:
            if call.active():
                call.called = 1
                call.func(*call.args, **call.kw)
