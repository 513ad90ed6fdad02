"""
The file of the control socket is created, replaced, refused and removed.
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
    Makes real sockets, and never runs.
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
    Fails like the system. (Twisted's own port leaves the socket to the garbage collector, which then warns.)
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
        monkeypatch.chdir(tmp_path)  # paths of sockets have a short limit
        self.folder = tmp_path

    def opened(self) -> tuple[ControlSocket, UnixReactor]:
        """
        An open socket, which is closed after the test.
        """
        reactor = UnixReactor()
        control = ControlSocket("kgateway.sock", {}, reactor)
        self.successResultOf(control.open())
        self.addCleanup(self.close, control, reactor)
        return control, reactor

    def close(self, control: ControlSocket, reactor: UnixReactor) -> None:
        """
        Close the socket, which takes a turn of the reactor.
        """
        closed = control.close()
        reactor.advance(0)
        self.successResultOf(closed)

    def refusal(self, path: str = "kgateway.sock") -> str:
        """
        The reason why the socket cannot be opened.
        """
        control = ControlSocket(path, {}, UnableReactor())
        return str(self.failureResultOf(control.open(), ControlSocketError).value)

    def connected(self, reactor: UnixReactor) -> tuple[ControlProtocol | None, StringTransport]:
        protocol, transport = reactor.factory.buildProtocol(UNIXAddress(None)), StringTransport()
        assert protocol is None or isinstance(protocol, ControlProtocol)
        if protocol:
            protocol.makeConnection(transport)
        return protocol, transport

    def test_nothing_is_opened_by_the_constructor(self) -> None:
        """
        twistd may fork before the service starts.
        """
        ControlSocket("kgateway.sock", {}, UnixReactor())
        assert os.listdir() == []

    def test_only_its_own_user_may_connect(self) -> None:
        """
        The file has mode 0600, whatever the process's umask is.
        """
        mask = os.umask(0)
        self.addCleanup(os.umask, mask)
        self.opened()
        mode = os.stat("kgateway.sock").st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 384

    def test_close_removes_the_file(self) -> None:
        """
        Closing again, or without opening, does nothing.
        """
        control, reactor = self.opened()
        self.close(control, reactor)
        assert os.listdir() == []
        self.close(control, reactor)

    def test_close_disconnects_operators(self) -> None:
        control, reactor = self.opened()
        _, transport = self.connected(reactor)
        self.close(control, reactor)
        assert transport.disconnecting

    def test_close_succeeds_without_the_file(self) -> None:
        """
        If the file is missing nothing fails, and nothing listens.
        """
        control, reactor = self.opened()
        os.unlink("kgateway.sock")
        self.close(control, reactor)
        assert set() == set(reactor.getReaders())

    def test_close_leaves_the_file_of_another(self) -> None:
        """
        Another file at the path is not removed.
        """
        control, reactor = self.opened()
        os.rename("kgateway.sock", "moved")
        Path("kgateway.sock").write_text("another's")
        self.close(control, reactor)
        assert Path("kgateway.sock").read_text() == "another's"

    def test_a_stale_file_is_replaced(self) -> None:
        """
        A file that nobody answers is a killed gateway's.
        """
        with socket.socket(socket.AF_UNIX) as killed:
            killed.bind("kgateway.sock")
            killed.listen()
        self.opened()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect("kgateway.sock")

    def test_a_live_gateway_is_left_alone(self) -> None:
        """
        The message has its path and what to do, and the file is kept.
        """
        with socket.socket(socket.AF_UNIX) as other:
            other.bind("kgateway.sock")
            other.listen()
            assert (
                self.refusal() == "another gateway responds at kgateway.sock: name another path with --control-socket"
            )
            assert os.listdir() == ["kgateway.sock"]

    def test_a_busy_gateway_is_alive(self) -> None:
        """
        It counts as alive even if its backlog is full.
        """
        with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as first:
            other.bind("kgateway.sock")
            other.listen(0)
            first.connect("kgateway.sock")
            assert "another gateway responds" in self.refusal()

    def test_other_files_are_left_alone(self) -> None:
        """
        A file, a folder or a link at the path belongs to someone else.
        """
        Path("file").write_text("precious")
        Path("folder").mkdir()
        Path("link").symlink_to("elsewhere")
        for path in ("file", "folder", "link"):
            assert f"{path} already exists and is not a socket: name another path" in self.refusal(path)
        assert Path("file").read_text() == "precious"

    def test_a_missing_folder_is_named(self) -> None:
        assert "there is no folder for the control socket run/kgateway.sock" in self.refusal("run/kgateway.sock")

    def test_an_unwritable_folder(self) -> None:
        """
        The message has the system's reason, and what to do.
        """
        told = self.refusal("/proc/kgateway.sock")  # not even root can write there
        assert re.match(r"no control socket can be created at /proc/kgateway\.sock: [A-Z].*: name another path", told)

    def test_a_path_that_is_too_long(self) -> None:
        """
        The message has the path's length: the system's structure for addresses is short.
        """
        path = "x" * 150
        assert "its name has 150 bytes, too many for a socket: name another path" in self.refusal(path)

    def test_operators_are_limited(self) -> None:
        """
        The fifty-first is disconnected until another one leaves.
        """
        _, reactor = self.opened()
        protocols = [self.connected(reactor)[0] for _ in range(51)]
        assert [protocol for protocol in protocols if protocol is None] == [None]
        assert protocols[0]
        protocols[0].connectionLost()
        assert self.connected(reactor)[0] is not None
