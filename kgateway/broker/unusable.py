"""
Why a broker cannot be started.
"""


class Unusable(Exception):
    """
    The message says what is wrong, where, and what to do.
    """
