"""
What a subcommand does not do.
"""


class Refused(Exception):
    """
    It is not done, or not all of it; in words for the operator.
    """
