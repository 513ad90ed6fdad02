"""
A hundred producers and a hundred consumers at once, in a few processes.

Records have keys, and values of 1,000 random bytes; a hundred partitions, with a consumer for each, for there are no
groups in kgateway yet; the topic has the retention it gets by default. It is over when the last record has come to its
consumer, and each must come exactly once: as many in each partition as producers counted acks there, offset by offset,
and no more in the log than were sent.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

from bench.kafka import crowd
from bench.kafka.clients import create_topic, delete_topic, records_in
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import RECORD_BYTES
from tests.faults.process import cpu_seconds

TOPIC = "many"
_CLIENTS = 100  # of each kind
_PROCESSES = 4  # of each kind
_RECORDS = 5_000  # of each producer


@contextmanager
def _process(work: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """
    A process that works while this is entered, and a pipe to it. It is ended with all its clients: a hundred that close
    in good order, one after the other, take longer than what is measured.
    """
    spawn = get_context("spawn")
    ours, its = spawn.Pipe()
    process = spawn.Process(target=work, args=(its, *arguments))
    process.start()
    its.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def _answers(pipes: Sequence[Connection]) -> list[Any]:
    found = []
    for pipe in pipes:
        assert pipe.poll(2 * crowd.PATIENCE_S), "a process of clients does not answer"
        found.append(pipe.recv())
    return found


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    count = plan.part(_RECORDS)
    create_topic(server, TOPIC, _CLIENTS)
    with ExitStack() as running:
        shares = [range(number, _CLIENTS, _PROCESSES) for number in range(_PROCESSES)]
        reading, writing = (
            [running.enter_context(_process(work, server.bootstrap, TOPIC, share, *more)) for share in shares]
            for work, more in ((crowd.consume, ()), (crowd.produce, (count,)))
        )
        _answers([*reading, *writing])
        began, used = monotonic(), cpu_seconds(server.pid)
        last_at, client_cpu = _delivered(reading, writing)
        used = cpu_seconds(server.pid) - used
    held, expected = records_in(server, TOPIC, _CLIENTS), _CLIENTS * (count + 1)
    assert held == expected, f"{server.name} has {held} records of {expected}"
    delete_topic(server, TOPIC)
    took, records = last_at - began, _CLIENTS * count
    megabytes = records * RECORD_BYTES / 1e6
    return [Measured(done / took, used * 1_000 / megabytes, client_cpu / took) for done in (megabytes, records)]


def _delivered(reading: Sequence[Connection], writing: Sequence[Connection]) -> tuple[float, float]:
    """
    Have everything produced and consumed; when the last record came, and the clients' processor time.
    """
    for pipe in writing:
        pipe.send("go")
    produced = _answers(writing)
    acked: Counter[int] = sum((counted for counted, _ in produced), Counter())
    for pipe in reading:
        pipe.send(acked)
    consumed = _answers(reading)
    wrong = {index: what for _, found, _ in consumed for index, what in found.items()}
    assert not wrong, f"records came wrongly: {wrong}"
    return max(last_at for last_at, _, _ in consumed), sum(used for *_, used in [*produced, *consumed])


WORKLOAD = Workload(
    "many clients",
    [
        Row(f"{_CLIENTS} producers and {_CLIENTS} consumers, delivered", unit, at_least(1.0), "GB")
        for unit in ("MB/s", "records/s")
    ],
    _run,
)
