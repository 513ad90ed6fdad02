"""
What goes on beside a test, in a thread, until it is told to stop.
"""

from threading import Event, Thread

from tests.faults.client import Client
from tests.faults.producing import PATIENCE_S


class Aside:
    """
    Runs `_run`, which looks at `_stopping` again and again.
    """

    def __init__(self) -> None:
        self._stopping = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """
        Begin.
        """
        self._thread.start()

    def stop(self) -> None:
        """
        End.
        """
        self._stopping.set()
        if self._thread.is_alive():  # or it never was
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        raise NotImplementedError


class Asking(Aside):
    """
    Asks a server one thing after another, and connects anew when it has been killed.
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
        Ask what is to be asked first through each connection.
        """

    def _ask(self, client: Client) -> None:
        """
        Ask once.
        """
        raise NotImplementedError

    def _fail(self, failure: BaseException) -> None:
        """
        It came to an end that no crash explains.
        """
        raise NotImplementedError
