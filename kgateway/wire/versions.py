"""
Kafka's notation for versions: "0-13", "7+", "3" and "none" become ranges.
"""

NONE = range(0)
_BEYOND = 1 << 15  # versions are i16


def parse_versions(text: str) -> range:
    """
    The versions a text names.
    """
    if text == "none":
        return NONE
    if text.endswith("+"):
        return range(int(text[:-1]), _BEYOND)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def show_versions(versions: range) -> str:
    """
    The text that names these versions.
    """
    if not versions:
        return "none"
    if versions.stop == _BEYOND:
        return f"{versions.start}+"
    return str(versions.start) if len(versions) == 1 else f"{versions.start}-{versions.stop - 1}"
