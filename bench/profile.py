"""
Where the server spends its time while one client produces and while one reads: `python -m bench.profile`.

By `kgateway profile`, which slows Python's own functions down more than what is written in C: compare the rows of one
table, and do not add them up to a throughput. Parts are of the time in which there was something to do.
"""

from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from typing import Any

from bench.fetch import count_bytes
from bench.produce import SMALL_BYTES, TOPIC, fill, one_record, send
from kgateway.control.client import ask
from kgateway.messages.metadata import MetadataRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import FETCH_VERSION, Client, fetch_request

_SECONDS = 5.0
_ROWS = 12
_AT_ONCE = 10_000


def profiled(kafka: Kafka, work: Callable[[], object]) -> dict[str, Any]:
    """
    The profile while the work is done over and over.
    """
    stop = Event()

    def on_and_on() -> None:
        while not stop.is_set():
            work()

    thread = Thread(target=on_and_on)
    thread.start()
    try:
        found: dict[str, Any] = ask(kafka.control_socket, "profile", {"seconds": _SECONDS}, patience_s=_SECONDS + 60)
    finally:
        stop.set()
        thread.join()
    return found


def fetch_small(client: Client) -> None:
    """
    The same batch again and again: what a fetch costs without the bytes.
    """
    client.ask(fetch_request(TOPIC), FETCH_VERSION)


def show(title: str, found: dict[str, Any]) -> None:
    """
    Print the most expensive functions.
    """
    busy_s = found["seconds"] - found["waiting_s"]
    print(f"| {title}: function | own time | calls |")
    print("|---|---:|---:|")
    for row in [row for row in found["rows"] if "select.epoll" not in row["function"]][:_ROWS]:
        print(f"| `{row['function']}` | {row['own_s'] / busy_s:.1%} | {row['calls']:,} |")
    print(flush=True)


def main() -> None:
    with Kafka("--log-level", "warn", "--broker", "memory:") as kafka:
        producing = partial(send, one_record(kafka), _AT_ONCE, bytes(SMALL_BYTES), 1)
        show("produce one record", profiled(kafka, producing))
    with Kafka("--log-level", "warn", "--broker", "memory:") as kafka, Client(kafka.port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=TOPIC)]), 9)
        one_record(kafka)
        show("fetch one record", profiled(kafka, partial(fetch_small, client)))
    with Kafka("--log-level", "warn", "--broker", "memory:") as kafka:
        fill(kafka)
        show("fetch batches of 1 MB", profiled(kafka, partial(count_bytes, kafka.port)))


if __name__ == "__main__":
    main()
