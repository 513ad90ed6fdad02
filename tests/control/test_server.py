"""
The file of the control socket: made, replaced, refused and removed.
"""

import os
import re
import socket
import stat
from pathlib import Path

import pytest
from twisted.internet.address import UNIXAddress
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IProtocolFactory
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.internet.unix import Port
from twisted.trial.unittest import SynchronousTestCase

from kgateway.control.protocol import ControlProtocol
from kgateway.control.server import ControlSocket, ControlSocketError


class UnixReactor(MemoryReactorClock):
    """
    Makes real sockets, and is never run.
    """

    factory: IProtocolFactory

    def listenUNIX(
        self,
        address: str,
        factory: IProtocolFactory,
        backlog: int = 50,
        mode: int = 0,
        wantPID: bool = False,  # noqa: N803
    ) -> IListeningPort:
        port = Port(os.fsencode(address), factory, backlog, mode, self, wantPID)
        port.startListening()
        self.factory = factory
        return port


class UnableReactor(MemoryReactorClock):
    """
    Fails as the system does. (Twisted's own port leaves the socket to the garbage collector, which then warns.)
    """

    def listenUNIX(
        self,
        address: str,
        factory: IProtocolFactory,
        backlog: int = 50,
        mode: int = 0,
        wantPID: bool = False,  # noqa: N803
    ) -> IListeningPort:
        with socket.socket(socket.AF_UNIX) as port:
            try:
                port.bind(address)
            except OSError as error:
                raise CannotListenError(None, address, error) from error
        raise AssertionError(f"{address} can be made")


class ControlSocketTests(SynchronousTestCase):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)  # paths of sockets are short
        self.folder = tmp_path

    def opened(self) -> tuple[ControlSocket, UnixReactor]:
        """
        One that is open, and is closed after the test.
        """
        reactor = UnixReactor()
        control = ControlSocket("kgateway.sock", {}, reactor)
        self.successResultOf(control.open())
        self.addCleanup(self.close, control, reactor)
        return control, reactor

    def close(self, control: ControlSocket, reactor: UnixReactor) -> None:
        """
        Close it, as far as the reactor's next turn.
        """
        closed = control.close()
        reactor.advance(0)
        self.successResultOf(closed)

    def refusal(self, path: str = "kgateway.sock") -> str:
        """
        Why it cannot be opened.
        """
        control = ControlSocket(path, {}, UnableReactor())
        return str(self.failureResultOf(control.open(), ControlSocketError).value)

    def connected(self, reactor: UnixReactor) -> tuple[ControlProtocol | None, StringTransport]:
        """
        An operator.
        """
        protocol, transport = reactor.factory.buildProtocol(UNIXAddress(None)), StringTransport()
        assert protocol is None or isinstance(protocol, ControlProtocol)
        if protocol:
            protocol.makeConnection(transport)
        return protocol, transport

    def test_nothing_is_opened_before_it_is_told(self) -> None:
        """
        Making one leaves no file: twistd may fork first.
        """
        ControlSocket("kgateway.sock", {}, UnixReactor())
        assert os.listdir() == []

    def test_only_its_own_user_may_connect(self) -> None:
        """
        The file has mode 0600, whatever the process leaves to others.
        """
        mask = os.umask(0)
        self.addCleanup(os.umask, mask)
        self.opened()
        mode = os.stat("kgateway.sock").st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 384

    def test_close_removes_the_file(self) -> None:
        """
        And a second close, or one of what was never open, does nothing.
        """
        control, reactor = self.opened()
        self.close(control, reactor)
        assert os.listdir() == []
        self.close(control, reactor)

    def test_close_lets_go_of_operators(self) -> None:
        """
        Connections end with the socket.
        """
        control, reactor = self.opened()
        _, transport = self.connected(reactor)
        self.close(control, reactor)
        assert transport.disconnecting

    def test_close_does_without_the_file(self) -> None:
        """
        Where somebody has removed it nothing fails, and nothing listens.
        """
        control, reactor = self.opened()
        os.unlink("kgateway.sock")
        self.close(control, reactor)
        assert set() == set(reactor.getReaders())

    def test_close_leaves_the_file_of_another(self) -> None:
        """
        What stands at the path by then is not removed.
        """
        control, reactor = self.opened()
        os.rename("kgateway.sock", "moved")
        Path("kgateway.sock").write_text("another's")
        self.close(control, reactor)
        assert Path("kgateway.sock").read_text() == "another's"

    def test_a_stale_file_is_replaced(self) -> None:
        """
        Where nobody answers any more, the file is what a killed gateway left.
        """
        with socket.socket(socket.AF_UNIX) as killed:
            killed.bind("kgateway.sock")
            killed.listen()
        self.opened()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect("kgateway.sock")

    def test_a_live_gateway_is_left_alone(self) -> None:
        """
        The message says at which path it answers and what to do, and the file stays.
        """
        with socket.socket(socket.AF_UNIX) as other:
            other.bind("kgateway.sock")
            other.listen()
            assert (
                self.refusal() == "another gateway answers at kgateway.sock: name another place with --control-socket"
            )
            assert os.listdir() == ["kgateway.sock"]

    def test_a_gateway_too_busy_to_answer_is_alive(self) -> None:
        """
        Even with all of its places taken.
        """
        with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as first:
            other.bind("kgateway.sock")
            other.listen(0)
            first.connect("kgateway.sock")
            assert "another gateway answers" in self.refusal()

    def test_what_is_no_socket_is_left_alone(self) -> None:
        """
        A file, a folder or a link at the path is somebody's.
        """
        Path("file").write_text("precious")
        Path("folder").mkdir()
        Path("link").symlink_to("elsewhere")
        for path in ("file", "folder", "link"):
            assert f"{path} is there already and is no socket: name another place" in self.refusal(path)
        assert Path("file").read_text() == "precious"

    def test_a_folder_that_is_missing(self) -> None:
        """
        The message says so.
        """
        assert "there is no folder for the control socket run/kgateway.sock" in self.refusal("run/kgateway.sock")

    def test_a_folder_that_cannot_be_written(self) -> None:
        """
        The message has the system's reason, and what to do.
        """
        told = self.refusal("/proc/kgateway.sock")  # not even root may write there
        assert re.match(r"no control socket can be made at /proc/kgateway\.sock: [A-Z].*: name another place", told)

    def test_a_path_that_is_too_long(self) -> None:
        """
        The message has its length: the system's structure for addresses is short.
        """
        path = "x" * 150
        assert "its name has 150 bytes, too many for a socket: name another place" in self.refusal(path)

    def test_operators_are_bounded(self) -> None:
        """
        The fifty-first is turned away until one of them goes.
        """
        _, reactor = self.opened()
        protocols = [self.connected(reactor)[0] for _ in range(51)]
        assert [protocol for protocol in protocols if protocol is None] == [None]
        assert protocols[0]
        protocols[0].connectionLost()
        assert self.connected(reactor)[0] is not None
