"""
What idle connections cost: `python -m bench.idle`.

Each has asked for the API versions once, as every client does first, and then says nothing. Memory is the resident set
of the whole server, with its program; before the connections come, one client has asked the same and gone.
"""

from contextlib import ExitStack
from time import monotonic, sleep

from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import Client
from tests.faults.process import MIB, allow_files, cpu_seconds, resident_bytes

CONNECTIONS = 10_000
_BROKERS = ("log:data", "memory:")
_SPARE_FILES = 200
_WATCHED_S = 11  # two rounds of the watch over idle connections


def _row(broker: str, count: int) -> str:
    with Kafka("--log-level", "warn", "--broker", broker) as kafka, ExitStack() as open_ones:
        with Client(kafka.port) as first:
            first.ask(ApiVersionsRequest(), 0)  # what is made once is not part of it
        before, began = resident_bytes(kafka.pid), monotonic()
        for _ in range(count):
            open_ones.enter_context(Client(kafka.port)).ask(ApiVersionsRequest(), 0)
        seconds, after = monotonic() - began, resident_bytes(kafka.pid)
        busy = cpu_seconds(kafka.pid)
        sleep(_WATCHED_S)
        busy = (cpu_seconds(kafka.pid) - busy) / _WATCHED_S
    each = (after - before) / count / 1024
    sizes = f"{before / MIB:.1f} | {after / MIB:.1f} | {each:.1f}"
    return f"| `{broker.partition(':')[0]}:` | {count:,} | {sizes} | {seconds:.1f} | {busy:.1%} |"


def main() -> None:
    count = min(CONNECTIONS, allow_files(CONNECTIONS + _SPARE_FILES) - _SPARE_FILES)
    print("| broker | connections | before MiB | after MiB | KiB each | connected in s | share of a core while idle |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for broker in _BROKERS:
        print(_row(broker, count), flush=True)


if __name__ == "__main__":
    main()
