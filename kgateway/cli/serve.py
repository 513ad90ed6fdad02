"""
The help of `kgateway serve`, from the table of settings. The options are read by `read_settings`, under twistd.
"""

from argparse import ArgumentParser

from kgateway.cli.common.parser import Command, example_text
from kgateway.config.settings import OPTION_SOURCES, OPTIONS
from kgateway.config.sources import Option


def _add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "%(prog)s [options]"
    for row in OPTIONS.values():
        parser.add_argument(row.flag, metavar=row.kind.metavar, help=_help(row).replace("%", "%%"))
    parser.add_argument("--version", action="store_true", help="print the versions of kgateway and Twisted, and exit")
    parser.epilog = (
        f"{OPTION_SOURCES}\n\n{example_text('kgateway serve --broker log:kgateway-data --num-partitions 8')}"
    )


def _help(row: Option) -> str:
    default = f"; default {row.shown_default}" if row.shown_default else ""
    return f"{row.meaning} ({row.allowed}{default})"


SERVE = Command(_add_arguments, lambda options: [], has_json=False)
