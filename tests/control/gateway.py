"""
A process with only a control socket, at the given path.
"""

import sys
from typing import Any

from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.control.server import ControlSocket


def main(path: str, reactor: Any) -> None:
    """
    Open the socket, print the outcome, and serve until a signal arrives.
    """
    control = ControlSocket(path, {"echo": lambda given: given, "late": lambda given: Deferred()}, reactor)
    reactor.addSystemEventTrigger("before", "shutdown", control.close)

    def opened(result: None) -> None:
        print("open", flush=True)

    def failed(failure: Failure) -> None:
        print(failure.value, flush=True)
        reactor.callWhenRunning(reactor.stop)

    control.open().addCallbacks(opened, failed)
    reactor.run()


if __name__ == "__main__":
    main(sys.argv[1], installed)
