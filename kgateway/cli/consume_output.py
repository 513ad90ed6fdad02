"""
Where records go that are consumed.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence

from kgateway.cli.consume_format import LINE, SHOWS, Show, Write, writer
from kgateway.cli.consume_json import json_line
from kgateway.cli.standard import writing
from kgateway.client.offsets import Partition
from kgateway.records.record import Record


class Output:
    """
    Writes records to stdout, and counts them and what they hold.
    """

    def __init__(self, options: Namespace) -> None:
        self.records = 0
        self.bytes = 0
        self._file = sys.stdout.buffer
        self._write: Write = json_line if options.json else _by_format(options)

    def write(self, partition: Partition, records: Sequence[Record]) -> None:
        """
        Write them.
        """
        topic, index, write = partition.topic, partition.index, self._write
        data = b"".join([write(topic, index, record) for record in records])
        with writing():
            self._file.write(data)
        self.records += len(records)
        self.bytes += sum([len(record.key or b"") + len(record.value or b"") for record in records])

    def flush(self) -> None:
        """
        Have the reader see all that was written.
        """
        with writing():
            self._file.flush()


def _by_format(options: Namespace) -> Write:
    return writer(LINE if options.format is None else options.format, _show(options.key_as), _show(options.value_as))


def _show(wanted: str | None) -> Show:
    """
    What is not said depends on who reads: a person at a terminal, or a program that wants the bytes.
    """
    return SHOWS[wanted or ("escaped" if sys.stdout.isatty() else "text")]
