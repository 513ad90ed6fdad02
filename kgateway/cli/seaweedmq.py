"""
`kgateway seaweedmq`: a SeaweedMQ cluster as a gateway sees it.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable
from importlib import import_module

_KINDS = {
    "dev": "start a throw-away cluster with a gateway before it, to try things out; Ctrl-C ends all of it",
    "verify": "check whether log files are whole, and the ledgers, which map Kafka's offsets, agree with them",
    "stats": "show how topics stand: ledgers, times, offsets, what is in files, and who publishes",
    "mapping": "show which message of SeaweedMQ holds one of Kafka's offsets",
}


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True)
    for name, what in _KINDS.items():
        described = f"{what[0].upper()}{what[1:]}."
        kind = kinds.add_parser(name, help=what, description=described, formatter_class=RawDescriptionHelpFormatter)
        module = _module(name)
        module.add_arguments(kind)
        kind.set_defaults(run_seaweedmq=module.run)


def run(options: Namespace) -> Iterable[str]:
    """
    The lines, as they come.
    """
    run_it: Callable[[Namespace], Iterable[str]] = options.run_seaweedmq
    return run_it(options)


def _module(name: str):  # type: ignore[no-untyped-def]  # a module
    try:
        return import_module(f"kgateway.cli.seaweedmq_{name}")
    except ModuleNotFoundError as error:
        missing = f"{error.name} is not installed; `pip install kgateway[seaweedmq]` brings it"
        print(f"kgateway seaweedmq: {missing}", file=sys.stderr)
        raise SystemExit(2) from None
