"""
What idle connections cost: `python -m bench.idle`.

Each has asked for the API versions once, as every client does first, and then says nothing. Memory is the resident set
of the whole server, with its program; before the connections come, one client has asked the same and gone.
"""

import resource
from contextlib import ExitStack
from time import monotonic, sleep

from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.testing.kafka import Kafka
from tests.faults.client import Client
from tests.faults.process import MIB, cpu_seconds, resident_bytes

CONNECTIONS = 10_000
_SPARE_FILES = 200
_WATCHED_S = 11  # two rounds of the watch over idle connections


def allow_files(count: int) -> int:
    """
    Let this process, and those it starts, have so many files; how many they can have.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
        except (ValueError, OSError):
            count = hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), max(hard, count)))
    return count


def main() -> None:
    count = min(CONNECTIONS, allow_files(CONNECTIONS + _SPARE_FILES) - _SPARE_FILES)
    with Kafka("--log-level", "warn", "--broker", "memory:") as kafka, ExitStack() as open_ones:
        with Client(kafka.port) as first:
            first.ask(ApiVersionsRequest(), 0)  # what is made once is not part of it
        before, began = resident_bytes(kafka.pid), monotonic()
        for _ in range(count):
            open_ones.enter_context(Client(kafka.port)).ask(ApiVersionsRequest(), 0)
        seconds, after = monotonic() - began, resident_bytes(kafka.pid)
        busy = cpu_seconds(kafka.pid)
        sleep(_WATCHED_S)
        busy = (cpu_seconds(kafka.pid) - busy) / _WATCHED_S
    print("| connections | before MiB | after MiB | KiB each | connected in s | share of a core while idle |")
    print("|---:|---:|---:|---:|---:|---:|")
    each = (after - before) / count / 1024
    print(f"| {count:,} | {before / MIB:.1f} | {after / MIB:.1f} | {each:.1f} | {seconds:.1f} | {busy:.1%} |")


if __name__ == "__main__":
    main()
