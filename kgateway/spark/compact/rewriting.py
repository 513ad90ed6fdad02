"""
Tasks that write a file of an archive anew, without the records that go.
"""

from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import pyarrow as pa

from kgateway.spark.archive.merging import rows_as_written
from kgateway.spark.archive.parquet import Output, Target
from kgateway.spark.archive.tiles import File
from kgateway.spark.compact.going import offsets_of


@dataclass(frozen=True, slots=True)
class Rewrite:
    """
    One file, and the files in which stands what goes.
    """

    target: Target
    file: File
    going: tuple[PurePath, ...]

    def run(self) -> File | None:
        """
        The file that takes its place; nothing where all of it stays. It is of the same offsets.
        """
        going = offsets_of(self.file, self.target.folder.store, self.going)
        if not len(going):
            return None
        output = Output(self.target, self.file.partition, self.file.first)
        try:
            for rows in rows_as_written(self.target.folder, self.file):
                goes = np.isin(rows.column("offset").to_numpy(), going, assume_unique=True)
                output.add(rows.filter(pa.array(~goes)))
            removed = self.file.removed + self.file.count - output.checksum.count
            return output.end(self.file.last, self.file.markers, self.file.aborted, removed)
        finally:
            output.give_up()
