"""
What a filer or a volume server does not do, and will not do if it is asked again.
"""


class FilerRefused(Exception):
    """
    In its words.
    """

    def __init__(self, path: str, words: str) -> None:
        super().__init__(path, words)
        self.path, self.words = path, words

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"
