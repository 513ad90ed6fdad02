"""
Failures of commands: a reason for the operator, and an exit code.
"""

FAILED, MISTAKE, INTERRUPTED = 1, 2, 130  # exit codes; the last one as shells know it


class CommandError(Exception):
    """
    A command failed; the reason is printed on stderr.
    """

    def __init__(self, reason: str, code: int = FAILED) -> None:
        super().__init__(reason)
        self.code = code


class UsageError(CommandError):
    """
    A mistake in the command line that no single option shows.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"error: {reason}", MISTAKE)


class Unwritable(Exception):
    """
    Stdout cannot be written.
    """
