"""
Text chosen by clients, made safe for a log or a terminal.
"""


def printable(text: str) -> str:
    """
    The text with control characters escaped, so that nobody can forge lines or move the cursor.
    """
    return text if text.isprintable() else text.encode("unicode_escape").decode()
