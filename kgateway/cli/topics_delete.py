"""
`kgateway topics delete`: delete topics with all they hold.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.confirming import add_yes, confirm
from kgateway.cli.layout import counted
from kgateway.cli.named import chosen, is_pattern
from kgateway.cli.topics_content import content
from kgateway.cli.topics_done import done_to_each
from kgateway.client.cluster import Cluster
from kgateway.client.topics import delete, topics

EXAMPLE = "kgateway topics delete orders --yes"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("names", metavar="NAME", nargs="+", help="its name or, with --yes, a pattern such as 'order*'")
    add_yes(parser)
    parser.set_defaults(check=partial(_check, parser))


def _check(parser: ArgumentParser, options: Namespace) -> None:
    patterns = [name for name in options.names if is_pattern(name)]
    if patterns and not options.yes:
        seen = f"`kgateway topics list {patterns[0]!r}` shows which topics fit"
        parser.error(f"{patterns[0]} is a pattern: say --yes to delete all that fits; {seen}")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    What has become of each.
    """
    wanted = chosen(cluster.settled(partial(topics, cluster)), options.names)
    if not options.yes:
        held = content(cluster, wanted)
        each = [f"{topic.name} with {counted(held[topic.name].records or 0, 'record')}" for topic in wanted]
        confirm(options, f"delete {', '.join(each)}")
    return done_to_each(options, cluster, [topic.name for topic in wanted], "deleted", partial(delete, cluster))
