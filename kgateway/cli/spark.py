"""
`kgateway spark`: jobs of Spark on topics. Each is a module `spark_<job>`, with `EXAMPLE`, `add_arguments` and `run`,
that begins by saying what it does; PySpark is imported when a job runs.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from importlib import import_module

from kgateway.cli.example import add_example
from kgateway.cli.spark_session import add_session, failures_told

_JOBS = ("archive", "verify", "compact", "sql", "report", "backfill")


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    jobs = parser.add_subparsers(dest="kind", metavar="JOB", required=True)
    for name in _JOBS:
        module = import_module(f"kgateway.cli.spark_{name}")
        what = (module.__doc__ or "").strip().partition(": ")[2]
        job = jobs.add_parser(name, help=what.partition(".")[0], description=what)
        job.set_defaults(run_job=module.run)
        module.add_arguments(job)
        add_session(job)
        add_example(job, module.EXAMPLE)


def run(options: Namespace) -> Iterable[str]:
    """
    The lines, as they come.
    """
    return failures_told(options, options.run_job)
