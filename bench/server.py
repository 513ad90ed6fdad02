"""
The server as its clients see it: `python -m bench.server`, or with names of what to measure.

Each of the measurements is a module of its own beside this one. The server is a real process, the clients are in this
one.
"""

import sys
from importlib import import_module

from bench.pairing import provenance

MEASURED = ("startup", "produce", "fetch", "idle", "waiting", "profile")


def main(names: list[str]) -> int:
    """
    Print the tables of docs/benchmarks.md.
    """
    unknown = set(names) - set(MEASURED)
    if unknown:
        print(f"there is no {', '.join(sorted(unknown))}: it is one of {', '.join(MEASURED)}", file=sys.stderr)
        return 2
    print(f"Measured {provenance('kgateway', 'Twisted', 'confluent-kafka')}", flush=True)
    for name in names or MEASURED:
        print(f"\n{name}\n", flush=True)
        import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
