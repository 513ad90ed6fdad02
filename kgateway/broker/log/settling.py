"""
Writes down every few seconds how far all partitions are known to be good, so that a crash costs little; and at the end
that all of them are.
"""

from collections.abc import Iterable, Iterator

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.checkpoints import Checkpoints
from kgateway.broker.log.opening import Openings
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.parts import LogParts

INTERVAL_S = 5.0
_SOON_S = 0.2
_SYNCS_S = 10.0  # at the end: who stops a gateway does not wait for ever
_CHECKPOINT = "the checkpoint"


class Settling:
    """
    Settles the partitions that have changed, a few at a time, and then saves the checkpoints.
    """

    _log = Logger()

    def __init__(self, openings: Openings, checkpoints: Checkpoints, parts: LogParts) -> None:
        self._openings = openings
        self._checkpoints = checkpoints
        self._parts = parts
        self._stopped = False
        self._next: IDelayedCall | None = None
        self._saving: IDelayedCall | None = None
        self._later()

    async def finish(self) -> bool:
        """
        Settle and sync all that is open; whether everything will outlast the machine now.
        """
        self._stopped = True
        for call in (self._next, self._saving):
            if call and call.active():
                call.cancel()
        partitions = list(self._openings.open.values())
        settled = list[bool]()

        def settle() -> Iterator[None]:
            for partition in partitions:
                settled.append(self._settle(partition))
                yield

        if partitions:  # else no turn is needed: a gateway that cannot start says so at once
            await self._parts.in_turns(settle())
        await self._sync([partition for partition in partitions if not partition.lost])
        synced = all(settled) and all(partition.is_sure and not partition.lost for partition in partitions)
        here = {partition.place for partition in partitions}
        for place, offset in self._checkpoints.settled.items():
            if place not in here and self._checkpoints.synced.get(place) != offset:
                synced = False  # it was not opened since a crash, and nobody has synced it
        try:
            self._save(partitions, sync=True)
        except OSError as error:
            self._complain(error)
            return False
        return synced

    async def _sync(self, partitions: list[LogPartition]) -> None:
        """
        Have all of them synced, as far as there is time for it.
        """
        ended: Deferred[None] = Deferred()

        def end(_: object = None) -> None:
            if not ended.called:
                ended.callback(None)

        late = self._parts.clock.callLater(_SYNCS_S, end)
        gatherResults([partition.all_synced() for partition in partitions]).addCallback(end)
        await ended
        if late.active():
            late.cancel()
        else:
            self._parts.syncs.stop()
            left = sum(not partition.is_sure for partition in partitions)
            self._log.warn(
                "{left} partitions are not synced after {seconds} s; the next start looks through what was written "
                "last. Nothing is lost unless the machine loses power before.",
                left=left,
                seconds=_SYNCS_S,
            )

    def save_soon(self) -> None:
        """
        Save the checkpoints in a moment: there are partitions more or less, and probably not only one.
        """
        if self._saving is None and not self._stopped:
            self._saving = self._parts.clock.callLater(_SOON_S, self.save_at_once)

    def save_at_once(self, *partitions: LogPartition) -> None:
        """
        Save what the checkpoints are to tell of these.
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
            self._next = self._parts.clock.callLater(INTERVAL_S, self._round)

    def _round(self) -> None:
        self._next = None
        changed = [*self._openings.changed]
        self._openings.changed.clear()  # partitions hold on to this list
        if not changed:
            self._later()
            return
        ended = self._parts.in_turns(self._settle_all(changed))
        ended.addErrback(self._failed).addCallback(lambda _: self._later())

    def _settle_all(self, partitions: list[LogPartition]) -> Iterator[None]:
        for partition in partitions:
            self._settle(partition)
            yield
        if not self._stopped:
            self._save(partitions, sync=False)

    def _settle(self, partition: LogPartition) -> bool:
        """
        Whether it is settled; one that is not is tried again.
        """
        if partition.lost or partition.settled:
            return True
        what = f"what is beside the log of {partition.folder.name}"
        try:
            partition.settle()
        except OSError as error:
            self._openings.changed.append(partition)
            self._parts.storage.failed(what, error)
            return False
        self._parts.storage.worked(what)
        return True

    def _save(self, partitions: Iterable[LogPartition], *, sync: bool) -> None:
        for partition in partitions:
            if not self._openings.has(partition):
                continue  # its topic was deleted, and there may be another of the name
            if partition.offline:
                self._checkpoints.settled.pop(partition.place, None)  # the kernel may have dropped what it cannot write
            elif partition.lost:
                continue
            elif partition.settled_offset is not None:
                self._checkpoints.settled[partition.place] = partition.settled_offset
            self._checkpoints.synced[partition.place] = partition.synced_offset
        self._checkpoints.save(sync=sync)
        for partition in partitions:
            partition.told_settled()
        self._parts.storage.worked(_CHECKPOINT)

    def _complain(self, error: OSError) -> None:
        self._parts.storage.failed(_CHECKPOINT, error)

    def _failed(self, failure: Failure) -> None:
        if isinstance(failure.value, OSError):
            self._complain(failure.value)
        else:
            self._log.failure("a checkpoint failed", failure)
