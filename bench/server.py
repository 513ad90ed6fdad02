"""
The server as its clients see it: `python -m bench.server`, or with names of what to measure.

Each of the measurements is a module of its own beside this one. The server is a real process, the clients are in this
one.
"""

import argparse
import sys
from importlib import import_module

from bench.machine import keep_bytecode
from bench.recording import add_results, recorded

MEASURED = ("startup", "produce", "fetch", "idle", "waiting", "profile")


def main(arguments: list[str]) -> int:
    """
    Print the tables of docs/benchmarks.md.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.server", description="kgateway as its clients see it")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure, of {', '.join(MEASURED)}")
    add_results(parser)
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.parts) - set(MEASURED):
        parser.error(f"there is no {', '.join(sorted(unknown))}: it is one of {', '.join(MEASURED)}")
    keep_bytecode()
    with recorded(chosen.results, "Twisted", "confluent-kafka") as recording:
        for name in chosen.parts or MEASURED:
            print(f"\n{name}\n", flush=True)
            with recording.of(name):
                import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
