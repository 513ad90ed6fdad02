"""
What must be true of a topic that was copied into another in transactions, checked from the final contents of both and
from the reports of the copiers.

The check is pure: it takes records, and returns their faults in words, with partitions and offsets. It demands

    each once   of what is committed in the input, in the output as it is to who reads what is committed
    in order    per key, as in the input; and who reads gets offsets that go up
    no aborts   nothing that was aborted in the input is copied; nothing of a transaction that was meant to be aborted,
                or of which its copier has told so, is read
    whole       a transaction is read with all that it has written, or not at all; if its copier has told that it is
                committed, it is read

A copy is the value that was read and the mark of the transaction that wrote it: `1234|copier-1/17/5/commit` was
written in transaction 5 of life 17 of copier-1, which meant to commit it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.clients.transactions.topic_views import Row, Views


class Copy(NamedTuple):
    """
    A record of the output.
    """

    row: Row
    source: "Source"
    mark: str


class Source(NamedTuple):
    """
    A record of the input; its copies have to be in the same partition.
    """

    partition: int
    key: bytes | None
    value: bytes

    def __str__(self) -> str:
        return f"{_text(self.value)} of {_text(self.key or b'')}"


def faults(read: Views, written: Views, told: Mapping[str, bool]) -> list[str]:
    """
    All faults of the output, given the outcomes of transactions that copiers have reported.
    """
    found, everything = _copies(written.committed), _copies(written.everything)
    return [
        *_lost(read, found, everything),
        *_doubled(found),
        *_unknown(read, found),
        *_aborted(found, told),
        *_torn(found, everything, told),
        *_disordered_keys(read, found),
        *(wrong for view in (read, written) for wrong in _disordered_offsets(view)),
    ]


def _lost(read: Views, found: Sequence[Copy], everything: Sequence[Copy]) -> Iterator[str]:
    copied, tried = {copy.source for copy in found}, _by_source(everything)
    for row in read.committed:
        if (source := _source(row)) not in copied:
            yield f"lost: {source}, read at {_place(row)}, written at {_places(tried.get(source, [])) or 'no place'}"


def _doubled(found: Sequence[Copy]) -> Iterator[str]:
    for source, several in _by_source(found).items():
        if len(several) > 1:
            yield f"doubled: {source} is at {_places(several)}"


def _unknown(read: Views, found: Sequence[Copy]) -> Iterator[str]:
    committed = {_source(row) for row in read.committed}
    aborted = {_source(row): row for row in read.everything if _source(row) not in committed}
    for copy in found:
        if row := aborted.get(copy.source):
            yield f"aborted and read: {copy.source}, aborted at {_place(row)} of the input, is at {_places([copy])}"
        elif copy.source not in committed:
            yield f"unknown: {copy.source}, which is not in the input, is at {_places([copy])}"


def _aborted(found: Sequence[Copy], told: Mapping[str, bool]) -> Iterator[str]:
    for copy in found:
        if copy.mark.endswith("/abort"):
            yield f"aborted and read: {copy.source} is at {_places([copy])}, meant to be aborted"
        elif not told.get(copy.mark, True):
            yield f"aborted and read: {copy.source} is at {_places([copy])}, aborted as its copier says"


def _torn(found: Sequence[Copy], everything: Sequence[Copy], told: Mapping[str, bool]) -> Iterator[str]:
    visible = {copy.row for copy in found}
    whole = defaultdict[str, list[Copy]](list)
    for copy in everything:
        whole[copy.mark].append(copy)
    for mark, copies in whole.items():
        hidden = [copy for copy in copies if copy.row not in visible]
        if 0 < len(hidden) < len(copies):
            shown = [copy for copy in copies if copy.row in visible]
            yield f"torn: of {mark} is read what is at {_places(shown)}, and not what is at {_places(hidden)}"
        elif hidden and told.get(mark, False):
            yield f"not read: {mark} is committed, as its copier says, and wrote what is at {_places(hidden)}"


def _disordered_keys(read: Views, found: Sequence[Copy]) -> Iterator[str]:
    offsets = {_source(row): row.offset for row in read.committed}
    last = dict[bytes | None, Copy]()
    for copy in found:
        if copy.source not in offsets:
            continue
        before = last.get(copy.source.key)
        if before and offsets[copy.source] < offsets[before.source]:
            yield f"out of order: {copy.source} at {_places([copy])} comes after {before.source} at {_places([before])}"
        last[copy.source.key] = copy


def _disordered_offsets(view: Views) -> Iterator[str]:
    for rows in (view.committed, view.everything):
        last = dict[int, int]()
        for row in rows:
            if row.offset <= last.get(row.partition, -1):
                yield f"out of order: {_place(row)} is read after {row.partition}@{last[row.partition]}"
            last[row.partition] = row.offset


def _copies(rows: Sequence[Row]) -> list[Copy]:
    return [Copy(row, *_parted(row)) for row in rows]


def _by_source(copies: Sequence[Copy]) -> Mapping[Source, list[Copy]]:
    found = defaultdict[Source, list[Copy]](list)
    for copy in copies:
        found[copy.source].append(copy)
    return found


def _parted(row: Row) -> tuple[Source, str]:
    value, _, mark = row.value.rpartition(b"|")
    return Source(row.partition, row.key, value), mark.decode()


def _source(row: Row) -> Source:
    return Source(row.partition, row.key, row.value)


def _place(row: Row) -> str:
    return f"{row.partition}@{row.offset}"


def _places(copies: Sequence[Copy]) -> str:
    return ", ".join(f"{_place(copy.row)} of {copy.mark}" for copy in copies)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
