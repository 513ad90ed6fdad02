"""
The two failures of the codec.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where in a message: `topics.partitions` of MetadataRequest v9.
    """

    message: str
    version: int
    field: str

    def __str__(self) -> str:
        return f"{self.message} v{self.version}: {self.field}"


class Malformed(ValueError):
    """
    Bytes that are not the message they should be.
    """

    def __init__(self, place: Place, position: int, reason: str) -> None:
        super().__init__(f"{place} at byte {position}: {reason}")
        self.place, self.position, self.reason = place, position, reason


class Unencodable(ValueError):
    """
    A value that the wire has no form for: a mistake of whoever filled the message.
    """

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place, self.reason = place, reason
