"""
The gateway's own client of SeaweedFS for who waits for each answer: its reactor turns in a thread of its own, one for
all of a process. It writes; what only reads does without.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.pollreactor import PollReactor
from twisted.internet.threads import blockingCallFromThread

from kgateway.broker.seaweed.addresses import ServerAddress
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweed.secured import Secured
from kgateway.broker.seaweed.security_file import BadSecurity, SecurityFile
from kgateway.spark.failures import WrongOption
from kgateway.spark.remote_http import RemoteError

T = TypeVar("T")


class WaitingFiler:
    """
    A filer. What it refuses, or does not answer for too long, is a RemoteError.
    """

    def __init__(self, address: ServerAddress, security_file: str) -> None:
        try:
            security = Secured(SecurityFile(Path(security_file)), clock=_turning()) if security_file else None
            self._filer = Seaweed([], _turning(), security=security).filer_at(address)
        except BadSecurity as error:
            raise WrongOption(str(error)) from error

    def ask(self, question: Callable[[Filer], Deferred[T]]) -> T:
        """
        The answer.
        """
        try:
            # Its stubs know nothing of what a Deferred fires with.
            return cast(T, blockingCallFromThread(_turning(), cast(Any, question), self._filer))
        except RpcError as error:
            raise RemoteError(f"the filer {self._filer.address} cannot be asked by gRPC: {error.message}") from error
        except FilerRefused as error:
            raise RemoteError(f"the filer {self._filer.address} refuses: {error}") from error


@cache
def _turning() -> Any:
    reactor = PollReactor()
    run = {"installSignalHandlers": False}
    Thread(target=reactor.run, kwargs=run, name="kgateway-filer", daemon=True).start()
    return reactor
