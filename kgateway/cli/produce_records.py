"""
From what is written to records: keys, headers and all that the options give to each.
"""

import time
from argparse import Namespace

from kgateway.cli.produce_input import Piece
from kgateway.cli.produce_json import read
from kgateway.cli.refused import Refused
from kgateway.client.outgoing import Outgoing, place_text


class Reading:
    """
    Makes records.
    """

    def __init__(self, options: Namespace) -> None:
        self._json: bool = options.json
        self._delimiter: bytes | None = options.key_delimiter
        self._key = None if options.key is None else options.key.encode(errors="surrogateescape")
        self._headers = tuple((name, value.encode(errors="surrogateescape")) for name, value in options.header)
        self._partition: int | None = options.partition
        self.look_at_the_clock()

    def look_at_the_clock(self) -> None:
        """
        Records have this time, until it is called again.
        """
        self._now_ms = time.time_ns() // 1_000_000

    def record(self, piece: Piece) -> Outgoing:
        """
        The record that is written there; Refused, with the place, where it is none.
        """
        if self._json:
            return self._of_json(piece)
        key, value = self._key, piece.data
        if self._delimiter is not None:
            key, found, value = piece.data.partition(self._delimiter)
            if not found:
                between = self._delimiter.decode(errors="replace")
                raise Refused(f"{place_text(piece.place)}: there is no {between!r} between a key and a value")
        return Outgoing(key, value, self._now_ms, self._headers, self._partition, piece.place)

    def _of_json(self, piece: Piece) -> Outgoing:
        try:
            written = read(piece.data)
        except ValueError as error:
            raise Refused(f"{place_text(piece.place)}: {error}") from error
        return Outgoing(
            self._key if written.key is None else written.key,
            written.value,
            self._now_ms if written.timestamp is None else written.timestamp,
            self._headers + written.headers,
            self._partition if written.partition is None else written.partition,
            piece.place,
        )
