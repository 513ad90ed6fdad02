"""
The files of a backfill, as Spark reads them, wherever they are.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from kgateway.spark.errors import Unreadable, WrongOption

FORMATS = {
    "parquet": (".parquet",),
    "json": (".json", ".jsonl", ".ndjson"),
    "csv": (".csv",),
}
_PACKED = (".gz", ".bz2", ".zst", ".snappy", ".lz4")
_OF_ALL = {"mode": "FAILFAST"}  # without it, an unreadable row becomes a row of nulls
_OPTIONS = {"parquet": {}, "json": _OF_ALL, "csv": {**_OF_ALL, "header": "true"}}
_PATTERN = set("*?[{")


class File(NamedTuple):
    """
    A file, with its size and time, by which a change is noticed.
    """

    path: str
    bytes: int
    changed_ms: int


@dataclass(frozen=True, slots=True)
class Source:
    """
    The files to read. Without a schema, Spark infers one from JSON, and all columns of CSV are strings.
    """

    paths: Sequence[str]
    format: str | None = None
    schema: str | None = None

    def files(self, spark: SparkSession) -> list[File]:
        """
        The files that exist; at least one.
        """
        for path in self.paths:
            _check_there(path)
        listed = (
            spark.read.format("binaryFile")
            .load(self._places())
            .selectExpr("path", "length", "unix_millis(modificationTime) as changed")
        )
        found = sorted(File(row.path, row.length, row.changed) for row in listed.collect())
        if not found:
            raise Unreadable(f"there are no files in {', '.join(self.paths)}")
        return found

    def frame(self, spark: SparkSession, files: Sequence[File]) -> DataFrame:
        form = self.format or _format_of(files)
        reader = spark.read.format(form).options(**_OPTIONS[form])
        with java_errors():
            return (reader.schema(self.schema) if self.schema else reader).load(self._places())

    def _places(self) -> list[str]:
        """
        Absolute paths: Java may have another working directory.
        """
        return [path if _is_elsewhere(path) else str(Path(path).absolute()) for path in self.paths]

    def has_texts_only(self, files: Sequence[File]) -> bool:
        """
        Whether numbers are strings too, and sort as such.
        """
        return (self.format or _format_of(files)) == "csv" and self.schema is None


def _check_there(path: str) -> None:
    if _is_elsewhere(path) or _PATTERN & {*path} or Path(path).exists():
        return
    parent = Path(path).parent
    near = get_close_matches(Path(path).name, [one.name for one in parent.iterdir()]) if parent.is_dir() else []
    raise Unreadable(f"there is no file {path}" + (f"; did you mean {' or '.join(near)}?" if near else ""))


@contextmanager
def java_errors() -> Iterator[None]:
    """
    Report what Java says about unreadable files without its trace.
    """
    try:
        yield
    except Exception as error:
        thrown = getattr(error, "java_exception", None)  # of py4j's errors
        if thrown is None or "Traceback" in str(error):  # Python failed
            raise
        raise Unreadable(f"the files cannot be read: {' '.join(_reasons(thrown))}") from error


def _reasons(thrown: Any) -> Iterator[str]:
    """
    The first line of each exception in a chain of causes, without the names of classes.
    """
    said = ""
    while thrown is not None:
        words = str(thrown.getMessage() or "").partition("\n")[0]
        if words and words not in said:
            yield words
        said += words
        thrown = thrown.getCause()


def _is_elsewhere(path: str) -> bool:
    return ":" in path.partition("/")[0]


def _format_of(files: Sequence[File]) -> str:
    found = Counter(_format_named(file.path) for file in files)
    if len(found) > 1 or None in found:
        names = ", ".join(str(one or "others") for one in found)
        raise WrongOption(f"these files do not all have the same format ({names}): name it with --format")
    return next(str(one) for one in found)


def _format_named(path: str) -> str | None:
    name = path.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return next((form for form, endings in FORMATS.items() if name.endswith(endings)), None)
