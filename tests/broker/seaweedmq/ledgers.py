"""
Ledgers drawn by Hypothesis, each beside a dictionary with the same content.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.broker.seaweedmq.ledger.ledger import Ledger

PARTS = [RingRange(0, 1260), RingRange(0, 630), RingRange(0, 315)]


@dataclass(repr=False)
class Model:
    """
    A ledger, and for each of Kafka's offsets: generation, base offset of its message, that message, its time, and its
    timestamp.
    """

    ledger: Ledger
    where: dict[int, tuple[int, int, int, int, int]] = field(default_factory=dict)

    def add(self, generation: int, offset: int, message: int, ts_ns: int, span: int, timestamp: int) -> None:
        """
        Add a batch in one message, or in as many messages as it has records.
        """
        self.ledger.append(offset, message, ts_ns, span, timestamp)
        for index in range(span):
            own = (offset, message) if self.ledger.batched else (offset + index, message + index)
            self.where[offset + index] = (generation, *own, ts_ns, timestamp)

    def drop_before(self, offset: int) -> None:
        self.ledger.drop_before(offset)
        for gone in [each for each in self.where if each < offset]:
            del self.where[gone]


def shortened(ledger: Ledger, count: int) -> Ledger:
    """
    A ledger with the first of these rows.
    """
    short = Ledger(ledger.batched, *ledger.sections[0][1:])
    short.start = ledger.start
    for place, row in zip(range(count), ledger.rows, strict=False):
        short.begin(*ledger.section_of(place)[1:])
        short.rows.append(*row)
    return short


@st.composite
def models(draw: st.DrawFn, batched: bool | None = None, max_size: int = 20) -> Model:
    """
    Batches that mostly follow one another, with holes in both kinds of offsets, and generations that begin again.
    """
    ledger = Ledger(draw(st.booleans()) if batched is None else batched, 0, PARTS[0])
    model = Model(ledger)
    generation = offset = message = ts_ns = 0
    gap = st.sampled_from([0, 0, 0, 0, 1, 3])
    for _ in range(draw(st.integers(0, max_size))):
        if generation < 2 and draw(st.integers(0, 9)) == 0:
            generation, message = generation + 1, 0
            ledger.begin(generation, PARTS[generation])
        offset, message = offset + draw(gap), message + draw(gap)
        ts_ns += draw(st.sampled_from([1, 1000, 400_000_000, 2_000_000_000]))
        span = draw(st.sampled_from([1, 1, 2, 7, 7, 7, 600]))
        model.add(generation, offset, message, ts_ns, span, draw(st.integers(-1, 50)))
        offset, message = offset + span, message + (1 if ledger.batched else span)
    return model
