"""
How long it takes until clients can connect: `python -m bench.startup`.

From the start of the process to the line that it is ready. Which imports take how long is measured in one more start,
as Python itself reports it; that makes imports slower, so their shares count and not their times.
"""

import os
import re
from collections import Counter
from statistics import median
from time import monotonic

from kgateway.testing.kafka import Kafka

STARTS = 10
_OURS = ("kgateway", "twisted", "zope", "crc32c", "snappy", "lz4", "zstandard")
_IMPORT = re.compile(r"import time: +(\d+) \| +\d+ \| +(\S+)")


def ready_ms() -> float:
    began = monotonic()
    with Kafka():
        return (monotonic() - began) * 1_000


def import_shares() -> tuple[float, dict[str, float]]:
    """
    Seconds of all imports, and which part of them each package has; what is Python's own stands together.
    """
    os.environ["PYTHONPROFILEIMPORTTIME"] = "1"
    try:
        with Kafka() as kafka:
            log = kafka.log
    finally:
        del os.environ["PYTHONPROFILEIMPORTTIME"]
    took: Counter[str] = Counter()
    for micros, module in _IMPORT.findall(log):
        top = module.split(".")[0]
        took[top if top in _OURS else "Python's own"] += int(micros)
    return took.total() / 1e6, {package: micros / took.total() for package, micros in took.most_common()}


def main() -> None:
    ready_ms()  # which compiles the modules where nothing has
    found = sorted(ready_ms() for _ in range(STARTS))
    print("| starts | min ms | median ms | max ms |")
    print("|---:|---:|---:|---:|")
    print(f"| {STARTS} | {found[0]:.0f} | {median(found):.0f} | {found[-1]:.0f} |\n")
    seconds, shares = import_shares()
    print(f"| imports, {seconds * 1_000:.0f} ms while measured | share |")
    print("|---|---:|")
    for package, share in shares.items():
        print(f"| {package} | {share:.0%} |")


if __name__ == "__main__":
    main()
