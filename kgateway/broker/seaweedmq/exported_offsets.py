"""
Committed offsets, for the tools of SeaweedFS's Go gateway: written into its files (offset_files.py) behind the commits.
"""

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweedmq.offset_files import OffsetFiles, is_offset
from kgateway.broker.state_log import Snapshots, StateLog
from kgateway.cluster.partition import Appended
from kgateway.interfaces import IPartition, KeyValue, ProducerEpoch

_BEHIND_S = 0.5


class ExportedOffsets:
    """
    Those of one namespace.
    """

    _log = Logger()

    def __init__(self, files: OffsetFiles, clock: IReactorTime) -> None:
        self._files = files
        self._clock = clock
        self._changed: dict[bytes, bytes | None] = {}  # the last row of each key
        self._is_writing = False

    def note(self, records: Sequence[KeyValue]) -> None:
        """
        These rows were written; what they say of offsets goes into files soon.
        """
        self._changed |= {key: value for key, value in records if is_offset(key)}
        if self._changed and not self._is_writing:
            self._is_writing = True
            self._clock.callLater(_BEHIND_S, self._write_soon)

    def _write_soon(self) -> None:
        changed, self._changed = self._changed, {}
        Deferred.fromCoroutine(self._write(changed)).addErrback(self._unwritten).addCallback(self._written)

    async def _write(self, changed: dict[bytes, bytes | None]) -> None:
        for key, value in changed.items():
            await self._files.write(key, value)

    def _unwritten(self, failure: Failure) -> None:
        self._log.warn("offsets are not all in files for the Go gateway: {error}", error=failure.getErrorMessage())

    def _written(self, _: None) -> None:
        self._is_writing = False
        self.note([])


class ExportingStateLog(StateLog):
    """
    The log of a coordinator of groups, which tells what it is given.
    """

    def __init__(
        self, partition: IPartition, snapshots: Snapshots, now_ms: Callable[[], int], exported: ExportedOffsets
    ) -> None:
        super().__init__(partition, snapshots, now_ms)
        self._exported = exported

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        appended = super().append(records, producer)
        self._exported.note(records)
        return appended
