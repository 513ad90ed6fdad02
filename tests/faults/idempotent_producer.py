"""
A producer that resends its last batches after each crash, as if it had not seen the responses.

Idempotence must survive a crash: each batch is answered with its first offset, and one that leaves a gap is refused.
So a server that has forgotten its producers is noticed at once; with other producers a crash would have to come just
between a write and its response.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Thread
from time import time

from kgateway.broker.partition.producer_state import WINDOW
from kgateway.messages.init_producer_id import InitProducerIdRequest
from kgateway.records.builder import BatchBuilder
from kgateway.wire.errors import ErrorCode
from tests.faults.client import PRODUCE_VERSION, Client, produce_request, produced
from tests.faults.ledger import Ledger, PartitionName, Sent, written
from tests.faults.producers import PATIENCE_S

_PAUSE_S = 0.02
_RECORDS = 3  # records per batch
_SIZE = 100
_INIT_VERSION = 4
_NOT_YET = ErrorCode.NOT_LEADER_OR_FOLLOWER


@dataclass(slots=True)
class Kept:
    """
    A batch that was sent, with its offset if that is known.
    """

    data: bytes
    sent: list[Sent]
    offset: int | None = None


@dataclass(slots=True)
class Progress:
    """
    What was sent to a partition.
    """

    sequence: int = 0
    kept: list[Kept] = field(default_factory=list)  # the last batches


class Repeater:
    """
    The thread, which is idle until the server was started.
    """

    def __init__(self, number: int, port: int, ledger: Ledger, places: Collection[PartitionName]) -> None:
        self.faults: list[str] = []
        self.repeated = 0
        self._number = number
        self._port = port
        self._ledger = ledger
        self._progress = {place: Progress() for place in places}
        self._id: tuple[int, int] | None = None
        self._stopping = Event()
        self._starts: SimpleQueue[Event] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def started(self) -> Event:
        """
        Tell that the server was started; the Event is set once everything is repeated, and the server may be killed
        before.
        """
        done = Event()
        self._starts.put(done)
        return done

    def stop(self) -> None:
        self._stopping.set()
        self.started()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            started = [self._starts.get()]
            while not self._stopping.is_set():
                while not self._starts.empty():  # the server was started again: to repeat everything once is enough
                    started.append(self._starts.get())
                if self._repeat():
                    break
                self._stopping.wait(_PAUSE_S)
            for done in started:
                done.set()

    def _repeat(self) -> bool:
        try:
            with Client(self._port) as client:
                self._work(client)
        except (OSError, AssertionError):  # the server was killed
            return False
        except BaseException as failure:
            self.faults.append(f"the producer that repeats failed: {failure!r}")
        return True

    def _work(self, client: Client) -> None:
        if self._id is None:
            answer = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), _INIT_VERSION)
            if answer.error_code:
                self.faults.append(f"no producer id is given: {ErrorCode(answer.error_code).name}")
                return
            self._id = answer.producer_id, answer.producer_epoch
        for place, progress in self._progress.items():
            for kept in progress.kept:
                self._send(client, place, kept)
            if progress.kept:
                self._leave_gap(client, place, progress)
            for _ in range(WINDOW - 1):
                progress.kept = [*progress.kept, self._next(place, progress)][-WINDOW:]
                self._send(client, place, progress.kept[-1])

    def _next(self, place: PartitionName, progress: Progress) -> Kept:
        sent = [self._ledger.next(place, self._number, 0) for _ in range(_RECORDS)]
        kept = Kept(self._batch(place, sent, progress.sequence), sent)
        progress.sequence += _RECORDS
        return kept

    def _batch(self, place: PartitionName, sent: list[Sent], sequence: int) -> bytes:
        assert self._id
        producer_id, epoch = self._id
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        for each in sent:
            builder.append(None, written(place, each, _SIZE), timestamp=int(time() * 1_000))
        return builder.build()

    def _send(self, client: Client, place: PartitionName, kept: Kept) -> None:
        """
        Send a batch, which keeps its first offset if it is repeated.
        """
        code, offset = self._ask(client, place, kept.data)
        if code != ErrorCode.NONE:
            self.faults.append(f"{place}: {kept.sent[0]} is answered with {ErrorCode(code).name}")
        elif kept.offset is None:
            kept.offset = offset
            for number, sent in enumerate(kept.sent):
                self._ledger.promise(place, sent, offset + number)
        elif offset != kept.offset:
            self.faults.append(f"{place}: {kept.sent[0]} is at {kept.offset}; sent again, it is answered with {offset}")
        else:
            self.repeated += 1

    def _leave_gap(self, client: Client, place: PartitionName, progress: Progress) -> None:
        code, _ = self._ask(client, place, self._batch(place, progress.kept[-1].sent, progress.sequence + 1))
        if code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.faults.append(f"{place}: a gap in the sequence numbers is answered with {ErrorCode(code).name}")

    def _ask(self, client: Client, place: PartitionName, data: bytes) -> tuple[int, int]:
        topic, partition = place
        while True:
            answer = produced(client.ask(produce_request(topic, data, partition=partition), PRODUCE_VERSION))
            if answer.error_code != _NOT_YET:
                return answer.error_code, answer.base_offset
            self._stopping.wait(_PAUSE_S)
