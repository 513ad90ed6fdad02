"""
Numbers with their nouns, for people.
"""


def counted(number: int, noun: str, plural: str = "", *, form: str = "") -> str:
    """
    A number with its noun, in the plural unless the number is 1.
    """
    return f"{number:{form}} {noun if number == 1 else plural or f'{noun}s'}"
