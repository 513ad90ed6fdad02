"""
The options of `kgateway seaweedmq` that choose the cluster, and the reactor that runs during an inspection.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from kgateway.broker.seaweed.calls.addresses import master_addresses
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.security.cluster_security import TomlSecurity
from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile
from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster, TopicNotFound
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.cli.common.errors import MISTAKE, UNREACHABLE, CommandError, UnknownTopicOrPartition
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.parser import Command
from kgateway.observe.printable import printable

Say = Callable[[str | Json], None]


def seaweedmq_command(
    add_arguments: Callable[[ArgumentParser], None],
    work: Callable[[Namespace, ReadOnlyCluster, Say], Awaitable[int]],
    epilog: str,
) -> Command:
    """
    A command that inspects a cluster; the program then ends with the exit code that `work` returns.
    """

    def add_all(parser: ArgumentParser) -> None:
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.epilog = epilog
        _add_cluster(parser)
        add_arguments(parser)

    def run(options: Namespace) -> Iterator[str | Json]:
        inspection = _Inspection(options, work)
        try:
            react(lambda reactor: Deferred.fromCoroutine(inspection.run(reactor)))
        except SystemExit as end:
            yield from inspection.objects
            if inspection.failure:
                raise inspection.failure from None
            if end.code:
                raise

    return Command(add_all, run)


def _add_cluster(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--masters",
        metavar="HOST:PORT,...",
        required=True,
        type=_as_argument(master_addresses),
        help="the masters of the cluster; one that answers is enough",
    )
    parser.add_argument("--filer-group", metavar="GROUP", default="", help="the filerGroup of its filers and brokers")
    parser.add_argument(
        "--security",
        metavar="FILE",
        type=_as_argument(lambda path: TomlSecurity(SecurityFile(Path(path)))),
        help="the security.toml with the certificates and keys that it wants",
    )


def topic_name(text: str) -> str:
    """
    The value of an argument that can be a folder of SeaweedMQ's.
    """
    if not text or "/" in text:
        raise ArgumentTypeError(f"{text!r} is no name of a topic")
    return text


class _Inspection:
    """
    One run of a command, which prints its lines as they come.
    """

    def __init__(self, options: Namespace, work: Callable[[Namespace, ReadOnlyCluster, Say], Awaitable[int]]) -> None:
        self.objects: list[Json] = []  # for programs
        self.failure: CommandError | BrokenPipeError | None = None
        self._options = options
        self._work = work

    async def run(self, reactor: Any) -> None:
        """
        Do the work, and end the reactor with its exit code.
        """
        given = self._options
        seaweed = SeaweedCluster(given.masters, reactor, filer_group=given.filer_group, security=given.security)
        code = MISTAKE
        try:
            code = await self._work(given, ReadOnlyCluster(seaweed, reactor), self._say)
        except TopicNotFound as error:
            self.failure = UnknownTopicOrPartition(str(error))
            self.failure.exit_code = MISTAKE
        except CLUSTER_ERRORS as error:
            masters = ",".join(map(str, given.masters))
            reason = error.message if isinstance(error, RpcError) else error
            self.failure = CommandError(f"the cluster of {masters} cannot be read: {reason}", MISTAKE, UNREACHABLE)
        except BrokenPipeError as error:
            self.failure = error
        await seaweed.close()
        raise SystemExit(code)

    def _say(self, part: str | Json) -> None:
        if isinstance(part, str):
            print("\n".join(map(printable, part.split("\n"))), flush=True)
        else:
            self.objects.append(part)


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
