"""
Text chosen by clients, made safe for a log or a terminal.
"""


def printable(text: str) -> str:
    """
    The text with control characters escaped, so that nobody can forge lines or move the cursor.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
