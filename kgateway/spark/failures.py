"""
What can go wrong with a read or a write, in words for whoever runs the query.
"""


class WrongOption(ValueError):
    """
    An option that is not known, or has a value that cannot be.
    """


class Unreadable(Exception):
    """
    The records cannot be had: no server answers, a file is damaged.
    """


class TopicGone(Unreadable):
    """
    There is no such topic or partition any more.
    """


class DataLost(Exception):
    """
    Records that were to be read are not there any more.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}. With failOnDataLoss=false the query goes on with what is there")


class Unwritten(Exception):
    """
    Records could not be written.
    """
