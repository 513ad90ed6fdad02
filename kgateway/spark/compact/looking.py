"""
Tasks that look at the files of an archive before it is compacted.
"""

from dataclasses import dataclass
from pathlib import PurePath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgateway.spark.archive.folder import Folder
from kgateway.spark.archive.frames import path_of
from kgateway.spark.archive.parquet import crc_of, first_line
from kgateway.spark.archive.store import Store
from kgateway.spark.archive.tiles import File
from kgateway.spark.columns import TYPES
from kgateway.spark.failures import Unreadable


@dataclass(frozen=True, slots=True)
class Look:
    """
    At one file: is it what was written, and which records are old?
    """

    folder: Folder
    file: File
    before_ms: int | None  # all are old where no time is given

    def run(self) -> int:
        """
        The offset of the first record that is not old, or the one behind the file. Unreadable where it was changed:
        what follows from such a file might remove what nobody has any more.
        """
        path = path_of(self.folder, self.file)
        if crc_of(self.folder.store, path) != self.file.crc:
            raise Unreadable(f"{path} was changed since it was written: `kgateway spark verify`")
        first = None if self.before_ms is None else _first_since(self.folder.store, path, self.before_ms)
        return self.file.last + 1 if first is None else first


def _first_since(store: Store, path: PurePath, since_ms: int) -> int | None:
    since = pa.scalar(since_ms * 1_000, TYPES["timestamp"])
    try:
        with store.open(path) as bytes_of, pq.ParquetFile(bytes_of) as file:
            for number in range(file.num_row_groups):
                rows = file.read_row_group(number, columns=["offset", "timestamp"], use_threads=False)
                times = rows["timestamp"].cast(TYPES["timestamp"])
                place = pc.index(pc.fill_null(pc.greater_equal(times, since), fill_value=True), value=True).as_py()
                if place >= 0:
                    return int(rows["offset"][place].as_py())
    except (pa.ArrowException, KeyError) as error:
        raise Unreadable(f"{path} cannot be read: {first_line(error)}") from None
    return None
