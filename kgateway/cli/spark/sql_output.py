"""
Writes query results for people or for programs.
"""

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgateway.cli.common.errors import UsageError
from kgateway.cli.common.output import cut
from kgateway.cli.spark.locations import check_new_file
from kgateway.plurals import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE, JSON, CSV, PARQUET = FORMATS = ("table", "json", "csv", "parquet")
_ROWS_MAX = 1_000  # of a table, unless more are wanted
_CELL_MAX = 60
_GAP = "  "
_NULL = "NULL"


def check_output(path: Path | None, form: str) -> None:
    """
    CommandError if the result cannot be written to this path.
    """
    if path is None:
        if form == PARQUET:
            raise UsageError("Parquet is written to a folder: name it with --output")
        return
    check_new_file(path)


def into_file(result: "DataFrame", form: str, path: Path, limit: int | None) -> None:
    """
    Write it, so that it is there whole or not at all: Parquet as a folder, by Spark's tasks, everything else as a file.
    """
    part = path.absolute().with_name(f".{path.name}.part-{uuid.uuid4().hex}")
    try:
        if form == PARQUET:
            from kgateway.spark.sql.results import check_names

            check_names(result)
            result.write.parquet(str(part))
        else:
            with open(part, "x", encoding="utf-8", newline="") as file:
                for line in table(result, limit) if form == TABLE else lines(result, form):
                    file.write(f"{line}\n")
        os.rename(part, path)
    finally:
        if part.is_dir():
            shutil.rmtree(part)
        part.unlink(missing_ok=True)


def lines(result: "DataFrame", form: str) -> Iterator[str]:
    """
    A line for each row: JSON, or CSV with a line of headings. In CSV null is empty, and an empty text is `""`.
    """
    from kgateway.spark.sql.results import as_json, as_texts

    if form == JSON:
        for row in as_json(result).toLocalIterator(prefetchPartitions=True):
            yield row[0]
        return
    yield ",".join(map(_csv, result.columns))
    for row in as_texts(result).toLocalIterator(prefetchPartitions=True):
        yield ",".join(map(_csv, row))


def table(result: "DataFrame", limit: int | None) -> Iterator[str]:
    """
    A table, with numbers aligned to the right, and its number of rows.
    """
    from pyspark.sql.types import NumericType

    from kgateway.spark.sql.results import as_texts

    most = limit or _ROWS_MAX
    found = as_texts(result.limit(most + 1)).collect()
    is_right = [isinstance(field.dataType, NumericType) for field in result.schema.fields]
    yield from laid_out(result.columns, [tuple(row) for row in found[:most]], is_right)
    if len(found) > most:
        yield f"{counted(most, 'row')}, and there are more: --limit N shows N, --output FILE has all"
    else:
        yield counted(len(found), "row")


def laid_out(names: Sequence[str], rows: Sequence[Sequence[str | None]], is_right: Sequence[bool]) -> Iterator[str]:
    cells = [[_cell(cell) for cell in row] for row in [names, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    for row in cells:
        yield _GAP.join(map(_padded, row, widths, is_right)).rstrip()


def _padded(cell: str, width: int, is_right: bool) -> str:
    return cell.rjust(width) if is_right else cell.ljust(width)


def _cell(text: str | None) -> str:
    return _NULL if text is None else cut(text, _CELL_MAX)


def _csv(text: Any) -> str:
    if text is None:
        return ""
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if not text or set(text) & set(',"\r\n') else str(text)
