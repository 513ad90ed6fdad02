"""
The options of `kgateway seaweedmq` that choose the cluster. What the extra `seaweedmq` brings is imported when a
command runs, so that its help is there without it.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgateway.broker.seaweed.calls.addresses import master_addresses
from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.parser import Command

if TYPE_CHECKING:
    from kgateway.broker.seaweed.security.cluster_security import TomlSecurity
    from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster

Say = Callable[[str | Json], None]


def seaweedmq_command(
    add_arguments: Callable[[ArgumentParser], None],
    work: Callable[[Namespace, "ReadOnlyCluster", Say], Awaitable[int]],
    epilog: str,
) -> Command:
    """
    A command that inspects a cluster; the program then ends with the exit code that `work` returns.
    """

    def add_all(parser: ArgumentParser) -> None:
        parser.epilog = epilog
        _add_cluster(parser)
        add_arguments(parser)

    def run(options: Namespace) -> Iterator[str | Json]:
        from kgateway.cli.seaweedmq.inspection import inspect

        return inspect(options, work)

    return Command(add_all, run)


def _add_cluster(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--masters",
        metavar="HOST:PORT,...",
        required=True,
        type=_as_argument(master_addresses),
        help="the masters of the cluster; one that responds is enough",
    )
    parser.add_argument("--filer-group", metavar="GROUP", default="", help="the filerGroup of its filers and brokers")
    parser.add_argument(
        "--security",
        metavar="FILE",
        type=_as_argument(_security),
        help="the security.toml with the certificates and keys that it requires",
    )


def _security(path: str) -> "TomlSecurity":
    from kgateway.broker.seaweed.security.cluster_security import TomlSecurity

    return TomlSecurity(SecurityFile(Path(path)))


def topic_name(text: str) -> str:
    """
    The value of an argument that can be a folder of SeaweedMQ's.
    """
    if not text or "/" in text:
        raise ArgumentTypeError(f"{text!r} is not the name of a topic")
    return text


def _as_argument(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """
    Reads an argument, and keeps the words of `read` for what is wrong with it.
    """

    def argument(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, BadSecurity) as error:
            raise ArgumentTypeError(str(error)) from None

    return argument
