"""
Paths of what is in a filer.
"""


def parted(path: str) -> tuple[str, str]:
    """
    The folder, and the name in it. That of the root is empty.
    """
    folder, slash, name = path.rpartition("/")
    if not slash or not (path.startswith("/") and (name or path == "/")) or "//" in path:
        raise ValueError(f"{path!r} is no path in a filer")
    return folder or "/", name


def below(folder: str, name: str) -> str:
    """
    The path of what has this name in the folder.
    """
    return f"{folder.rstrip('/')}/{name}"
