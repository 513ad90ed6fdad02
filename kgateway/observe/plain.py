"""
Text that clients have chosen, as it may stand in a log or on a terminal.
"""


def printable(text: str) -> str:
    """
    The text with line ends and control characters written out, so that nobody forges lines or moves the cursor.
    """
    return text if text.isprintable() else text.encode("unicode_escape").decode()
