"""
Every few seconds settles changed partitions and saves how far they are synced and settled, so that recovery after a
crash has little to do. At a stop, settles and syncs all, and says whether that worked.
"""

from collections.abc import Iterable, Iterator

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.data_folder.checkpoints import Checkpoints
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.partition.registry import PartitionRegistry
from kgateway.broker.log.runtime import LogRuntime
from kgateway.log_messages import CHECKPOINT_FAILED, NOT_SYNCED_AT_STOP
from kgateway.plurals import counted

INTERVAL_S = 5.0
_SOON_S = 0.2
_SYNCS_S = 10.0  # at a stop: an operator does not wait for ever
_CHECKPOINT = "the checkpoint"


class Checkpointer:
    """
    Every few seconds settles the partitions that have changed, then saves the checkpoints.
    """

    _log = Logger()

    def __init__(self, registry: PartitionRegistry, checkpoints: Checkpoints, runtime: LogRuntime) -> None:
        self._registry = registry
        self._checkpoints = checkpoints
        self._runtime = runtime
        self._stopped = False
        self._next: IDelayedCall | None = None
        self._saving: IDelayedCall | None = None
        self._later()

    async def finish(self) -> bool:
        """
        Settle and sync all open partitions. Returns whether everything is synced now.
        """
        self._stopped = True
        for call in (self._next, self._saving):
            if call and call.active():
                call.cancel()
        partitions = list(self._registry.open.values())
        settled = list[bool]()

        def settle() -> Iterator[None]:
            for partition in partitions:
                settled.append(self._settle(partition))
                yield

        if partitions:  # else no turn is needed: a gateway that cannot start says so at once
            await self._runtime.in_turns(settle())
        await self._sync([partition for partition in partitions if not partition.lost])
        synced = all(settled) and all(partition.is_synced and not partition.lost for partition in partitions)
        opened = {partition.topic_partition for partition in partitions}
        for topic_partition, offset in self._checkpoints.settled.items():
            if topic_partition not in opened and self._checkpoints.synced.get(topic_partition) != offset:
                synced = False  # not opened since a crash, so nobody has synced it
        try:
            self._save(partitions, sync=True)
        except OSError as error:
            self._complain(error)
            return False
        return synced

    async def _sync(self, partitions: list[LogPartition]) -> None:
        ended: Deferred[None] = Deferred()

        def end(_: object = None) -> None:
            if not ended.called:
                ended.callback(None)

        late = self._runtime.clock.callLater(_SYNCS_S, end)
        gatherResults([partition.sync_all() for partition in partitions]).addCallback(end)
        await ended
        if late.active():
            late.cancel()
        else:
            self._runtime.stop_syncs()
            left = sum(not partition.is_synced for partition in partitions)
            self._log.warn(NOT_SYNCED_AT_STOP, partitions=counted(left, "partition"), seconds=_SYNCS_S)

    def save_soon(self) -> None:
        """
        Save the checkpoints in a moment: partitions were created or deleted, and others probably follow.
        """
        if self._saving is None and not self._stopped:
            self._saving = self._runtime.clock.callLater(_SOON_S, self.save_at_once)

    def save_at_once(self, *partitions: LogPartition) -> None:
        """
        Save the checkpoints now, with the offsets that these partitions have by now.
        """
        if self._saving and self._saving.active():
            self._saving.cancel()
        self._saving = None
        try:
            self._save(partitions, sync=False)
        except OSError as error:
            self._complain(error)

    def _later(self) -> None:
        if not self._stopped:
            self._next = self._runtime.clock.callLater(INTERVAL_S, self._round)

    def _round(self) -> None:
        self._next = None
        changed, self._registry.changed = self._registry.changed, []
        if not changed:
            self._later()
            return
        ended = self._runtime.in_turns(self._settle_all(changed))
        ended.addErrback(self._failed).addCallback(lambda _: self._later())

    def _settle_all(self, partitions: list[LogPartition]) -> Iterator[None]:
        for partition in partitions:
            self._settle(partition)
            yield
        if not self._stopped:
            self._save(partitions, sync=False)

    def _settle(self, partition: LogPartition) -> bool:
        """
        Settle the partition. Returns whether that succeeded; otherwise it is tried again in the next round.
        """
        if partition.lost or partition.settled:
            return True
        what = f"side files of {partition.folder.name}"
        try:
            partition.settle()
        except OSError as error:
            self._registry.changed.append(partition)
            self._runtime.health.failed(what, error)
            return False
        self._runtime.health.worked(what)
        return True

    def _save(self, partitions: Iterable[LogPartition], *, sync: bool) -> None:
        for partition in partitions:
            if not self._registry.has(partition):
                continue  # its topic was deleted, and there may be another with its name
            if partition.offline:
                # The kernel may have dropped what it could not write.
                self._checkpoints.settled.pop(partition.topic_partition, None)
            elif partition.lost:
                continue
            elif partition.settled_offset is not None:
                self._checkpoints.settled[partition.topic_partition] = partition.settled_offset
            self._checkpoints.synced[partition.topic_partition] = partition.synced_offset
        self._checkpoints.save(sync=sync)
        for partition in partitions:
            partition.checkpointed()
        self._runtime.health.worked(_CHECKPOINT)

    def _complain(self, error: OSError) -> None:
        self._runtime.health.failed(_CHECKPOINT, error)

    def _failed(self, failure: Failure) -> None:
        if isinstance(failure.value, OSError):
            self._complain(failure.value)
        else:
            self._log.failure(CHECKPOINT_FAILED, failure)
