"""
The errors of reads and writes, with messages for the user who runs the query.
"""


class WrongOption(ValueError):
    """
    An unknown option or an invalid value.
    """


class Unreadable(Exception):
    """
    The records cannot be read: no server answers, or a file is damaged.
    """


class TopicGone(Unreadable):
    """
    The topic or partition no longer exists.
    """


class DataLost(Exception):
    """
    Records that the query should read no longer exist.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}. With failOnDataLoss=false the query continues with the remaining records")


class Unwritten(Exception): ...
