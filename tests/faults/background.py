"""
Threads that work beside a test until stopped.
"""

from threading import Event, Thread

from tests.faults.client import Client
from tests.faults.producers import PATIENCE_S


class Background:
    """
    Runs `_run`, which checks `_stopping` regularly.
    """

    def __init__(self) -> None:
        self._stopping = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():  # or it was never started
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        raise NotImplementedError


class ServerPoller(Background):
    """
    Sends requests to a server, and reconnects after it was killed.
    """

    def __init__(self, port: int, pause_s: float) -> None:
        super().__init__()
        self._port = port
        self._pause_s = pause_s

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_s):
            try:
                with Client(self._port) as client:
                    self._greet(client)
                    while not self._stopping.wait(self._pause_s):
                        self._ask(client)
            except (OSError, AssertionError):  # the server was killed
                pass
            except BaseException as failure:
                self._fail(failure)
                return

    def _greet(self, client: Client) -> None:
        """
        Send the first requests of each connection.
        """

    def _ask(self, client: Client) -> None:
        raise NotImplementedError

    def _fail(self, failure: BaseException) -> None:
        """
        Record a failure that no crash explains.
        """
        raise NotImplementedError
