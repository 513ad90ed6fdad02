"""
The last row of one group: what a restarted gateway will know of it.
"""

from collections.abc import Callable
from copy import copy
from functools import partial

from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.groups.rows import Row, Write
from kgateway.messages.stored.group_metadata import GroupMetadataValue
from kgateway.wire.errors import ErrorCode, KafkaError

Written = Callable[[KafkaError | None], object]


class Journal:
    """
    Writes the rows of one group, and knows the last one.
    """

    _log = Logger()

    def __init__(self, write: Write) -> None:
        self._write = write
        self._safe: Row | None = None
        self._under_way: list[Row] = []  # which may fail, each for itself

    @property
    def last(self) -> Row | None:
        """
        What was written last, be it safe already or not.
        """
        return self._under_way[-1] if self._under_way else self._safe

    def replay(self, row: Row) -> None:
        """
        This is in the log.
        """
        self._safe = None if row.value is None else row

    def write(self, row: Row, written: Written) -> None:
        """
        Call `written` when the row is safe, now or later, or with the reason why it will not be.
        """
        self._under_way.append(row)
        try:
            safe = self._write([row])
        except KafkaError as error:
            self._undo(row, error, written)
            return
        if safe is None:
            self._succeeded(row, written)
            return
        safe.addCallbacks(lambda _: self._succeeded(row, written), partial(self._failed, row, written))
        safe.addErrback(lambda failure: self._log.failure("What follows a write of a group failed.", failure))

    def rename(self, instance_id: str | None, member_id: str) -> None:
        """
        Write that a static member of the last generation has this id now. A gateway that restarts before there is
        another generation would know the old id alone, and fence off who is alive.
        """
        if instance_id is None or self.last is None or not isinstance(self.last.value, GroupMetadataValue):
            return
        old = [each.member_id for each in self.last.value.members if each.group_instance_id == instance_id]
        if old and old[0] != member_id:
            self.write(Row(self.last.key, _renamed(self.last.value, old[0], member_id)), lambda _: None)

    def _succeeded(self, row: Row, written: Written) -> None:
        self._end(row)
        self._safe = row
        written(None)

    def _failed(self, row: Row, written: Written, failure: Failure) -> None:
        error = failure.value
        if not isinstance(error, KafkaError):
            self._log.failure("A group could not be written.", failure)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._undo(row, error, written)

    def _undo(self, row: Row, error: KafkaError, written: Written) -> None:
        self._end(row)
        self._log.warn("{key} could not be written: {error}", key=row.key, error=error)
        written(error)

    def _end(self, row: Row) -> None:
        self._under_way = [other for other in self._under_way if other is not row]


def _renamed(stored: GroupMetadataValue, old: str, new: str) -> GroupMetadataValue:
    stored = copy(stored)
    stored.members = [copy(member) for member in stored.members]
    for member in stored.members:
        if member.member_id == old:
            member.member_id = new
    if stored.leader == old:
        stored.leader = new
    return stored
