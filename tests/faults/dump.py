"""
What Kafka's own tool finds in a data folder: `DumpLogSegments` reads each segment, index and snapshot in it.

The environment variable KAFKA_JARS names the folder of Kafka's jars; tox has Maven fetch them.
"""

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.faults.ledger import PartitionName

_TOOL = "org.apache.kafka.tools.DumpLogSegments"
_SUFFIXES = (".log", ".index", ".timeindex", ".snapshot")
_PATIENCE_S = 300
_FILE = re.compile(r"Dumping (?P<name>.+/(?P<base>\d+)\.(?P<suffix>\w+))$")
_PARTITION = re.compile(r".+-\d+")  # segments that are being deleted have another suffix
_BATCH = re.compile(r"baseOffset: (\d+) lastOffset: (\d+) .* isvalid: (\w+)$")
_RECORD = re.compile(r"\| offset: (\d+) ")
_UNFINISHED = re.compile(r"Found (\d+) invalid bytes at the end of")
_HARMLESS = re.compile(
    r"Non-consecutive offsets in |  -1 is followed by \d+$|WARNING|SLF4J"
)  # a log that does not start at 0 says so


class _State(NamedTuple):
    name: str
    size: int
    changed_ns: int


class Segment(NamedTuple):
    """
    A file of batches.
    """

    base_offset: int
    following: int  # one past the last offset
    is_whole: bool  # the file has nothing but batches


class Dump:
    """
    Runs the tool on a data folder that no server has open, and reads a file again only after a change in its segment.
    """

    def __init__(self, data: Path) -> None:
        self.faults: list[str] = []
        self.files = 0
        self._data = data
        self._segments: dict[str, Segment] = {}  # by file name
        self._read_before: dict[str, set[_State]] = {}

    @property
    def segments(self) -> dict[PartitionName, list[Segment]]:
        """
        The segments of each partition, in order.
        """
        found: dict[PartitionName, list[Segment]] = {}
        for name in sorted(self._segments):
            topic, _, partition = name.partition("/")[0].rpartition("-")
            found.setdefault((topic, int(partition)), []).append(self._segments[name])
        return found

    def read(self) -> None:
        """
        Read changed files, and add what is wrong in them or between them to the faults.
        """
        states = defaultdict[str, set[_State]](set)
        for path in self._data.glob("*-*/*"):
            if path.suffix in _SUFFIXES and _PARTITION.fullmatch(path.parent.name):
                name, found = str(path.relative_to(self._data)), path.stat()
                states[name.partition(".")[0]].add(_State(name, found.st_size, found.st_mtime_ns))
        new = [state.name for base, row in states.items() if row != self._read_before.get(base) for state in row]
        there = {state.name for row in states.values() for state in row}
        self._segments = {name: segment for name, segment in self._segments.items() if name in there}
        self._read_before = states
        self._dump(sorted(new), "--deep-iteration", "--verify-index-only")
        self._dump(sorted(name for name in new if name.endswith("index")), "--index-sanity-check")
        for place, segments in self.segments.items():
            self.faults += _holes(place, segments)

    def _dump(self, names: list[str], *options: str) -> None:
        if not names:
            return
        jars = f"{os.environ['KAFKA_JARS']}/*"
        command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", jars, _TOOL, *options]
        command += ["--files", ",".join(names)]
        done = subprocess.run(command, cwd=self._data, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        self.faults += [line for line in done.stderr.splitlines() if not _HARMLESS.match(line)]
        if done.returncode:
            self.faults.append(f"DumpLogSegments ends with {done.returncode}")
            return
        files = re.split(r"^(?=Dumping )", done.stdout, flags=re.MULTILINE)
        assert len(files) == 1 + len(names), done.stdout[-1_000:]
        for text in files[1:]:
            self._note(text.splitlines())

    def _note(self, rows: list[str]) -> None:
        match = _FILE.match(rows[0])
        assert match, rows[0]
        self.files += 1
        if match["suffix"] == "log":
            self._segments[match["name"]] = self._segment(rows, int(match["base"]))

    def _segment(self, rows: list[str], base_offset: int) -> Segment:
        following, counted, unfinished = base_offset, base_offset, 0
        for row in rows[1:]:
            if record := _RECORD.match(row):
                if int(record[1]) != counted:
                    self.faults.append(f"{rows[0]}: record {record[1]} where {counted} is next")
                counted = int(record[1]) + 1
            elif batch := _BATCH.match(row):
                if int(batch[1]) != following or counted != following or batch[3] != "true":
                    self.faults.append(f"{rows[0]}: {row}")
                following = int(batch[2]) + 1
            elif found := _UNFINISHED.match(row):
                unfinished = int(found[1])
            elif not row.startswith("Log starting offset: "):
                self.faults.append(f"{rows[0]}: {row}")
        if counted != following:
            self.faults.append(f"{rows[0]}: records end at {counted}, batches at {following}")
        return Segment(base_offset, following, not unfinished)


def _holes(place: PartitionName, segments: list[Segment]) -> Iterator[str]:
    following = 0
    for segment in segments:
        if segment.base_offset != following:
            yield f"{place}: a segment begins with {segment.base_offset}, the one before it ends before {following}"
        if not segment.is_whole and segment is not segments[-1]:
            yield f"{place}: segment {segment.base_offset} has something behind its last batch"
        following = segment.following
