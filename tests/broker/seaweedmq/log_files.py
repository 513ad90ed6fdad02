"""
A partition's log files, written into a filer by a test.
"""

from collections.abc import Sequence
from struct import pack

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.protos.filer_pb2 import LogEntry
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.decoded_files import DecodedFiles
from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.by_name import FORMS
from kgateway.broker.seaweedmq.forms.form import Message
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.layout import SECOND_NS, Range, log_name
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.records.batch import Batch, placed, read_batch
from tests.broker.seaweed.cluster import done
from tests.broker.seaweed.running import reactor, wait

NOON_S = 1_800_000_000
PART = Range(0, 2520)


class LogFiles:
    """
    A file for every fifth second, each with these batches, which are given their offsets.
    """

    def __init__(
        self, seaweed: Seaweed, filer: Filer, folder: str, form: str, files: Sequence[Sequence[Batch]]
    ) -> None:
        self.form = FORMS[form]
        self.end = self._next_message = 0
        for number, found in enumerate(files):
            second = NOON_S + 5 * number
            data = b"".join(self._entry(each, second * SECOND_NS) for batch in found for each in self._messages(batch))
            wait(filer.files.put(f"{folder}/{log_name(second * SECOND_NS)}", data))
        self.folder = Folder(folder, 0, 0, 0, PART)
        self.firsts: list[str] = []  # files of which the first message was looked at
        self.reads: list[str] = []  # files that were read
        self.history = self._history(seaweed)
        done(self.history.refresh())

    def _messages(self, batch: Batch) -> list[Message]:
        base_offset = self.end
        whole = read_batch(b"".join(placed(batch, base_offset, 0)))
        self.end = whole.header.last_offset + 1
        return self.form.encode(whole, base_offset, 0)

    def _entry(self, message: Message, ts_ns: int) -> bytes:
        number, self._next_message = self._next_message, self._next_message + 1
        time = ts_ns + number % 1000
        data = LogEntry(ts_ns=time, key=message.key, data=bytes(message.value), offset=number).SerializeToString()
        return pack(">I", len(data)) + data

    def _history(self, seaweed: Seaweed) -> History:
        history = History(seaweed, [self.folder], self.form, DecodedFiles(1 << 20), reactor)
        first, read = history._files._first_entry, history._files.range_at

        def noting_first(file):  # type: ignore[no-untyped-def]
            self.firsts.append(file.path)
            return first(file)

        def noting_read(file, start):  # type: ignore[no-untyped-def]
            self.reads.append(file.path)
            return read(file, start)

        history._files._first_entry = noting_first  # type: ignore[method-assign]
        history._files.range_at = noting_read  # type: ignore[method-assign]
        return history

    def ledger(self, late_s: int = 0) -> Ledger:
        """
        One that agrees with them, by a clock that is late.
        """
        ledger = Ledger(self.form.batched, self.folder.unix_time_ns, PART)

        async def extend() -> None:
            async for _, piece in self.history.messages(0):
                ledger.extend([entry._replace(ts_ns=entry.ts_ns + late_s * SECOND_NS) for entry in piece], self.form)

        done(extend())
        self.forget()
        return ledger

    def forget(self) -> None:
        """
        Let nothing be known of the files, but that they are there.
        """
        paths = [file.path for file in self.history.files]
        self.history._files._forget(paths)
        self.history._ranges.forget(paths)
        self.firsts.clear()
        self.reads.clear()
