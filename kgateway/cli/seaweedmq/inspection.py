"""
An inspection of a cluster, and the reactor that runs meanwhile.
"""

from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster, TopicNotFound
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.cli.common.errors import MISTAKE, UNREACHABLE, CommandError, UnknownTopicOrPartition
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import safe_lines

Work = Callable[[Namespace, ReadOnlyCluster, Callable[[str | Json], None]], Awaitable[int]]


def inspect(options: Namespace, work: Work) -> Iterator[str | Json]:
    """
    Run `work`, which returns the exit code.
    """
    inspection = _Inspection(options, work)
    try:
        react(lambda reactor: Deferred.fromCoroutine(inspection.run(reactor)))
    except SystemExit as end:
        yield from inspection.objects
        if inspection.failure:
            raise inspection.failure from None
        if end.code:
            raise


class _Inspection:
    """
    One run of a command, which prints its lines as they come.
    """

    def __init__(self, options: Namespace, work: Work) -> None:
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
            print("\n".join(safe_lines(part)), flush=True)
        else:
            self.objects.append(part)
