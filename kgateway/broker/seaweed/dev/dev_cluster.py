"""
A cluster of SeaweedFS and SeaweedMQ on this machine, to try things out on and to test with: a master, a volume server
and a filer in one process, a broker in another.

Every port is chosen by us, below those that the system gives to outgoing connections: a process that is started again
finds its own free.
"""

import random
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint

from kgateway.broker.seaweed.calls.http_client import HttpClient
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.dev.weed_process import NotStarted, WeedProcess, in_words
from kgateway.broker.seaweed.grpc.call_headers import Method, RequestT, ResponseT
from kgateway.broker.seaweed.grpc.channel import Channel
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.masters import BROKERS, FILERS, LIST_NODES
from kgateway.broker.seaweed.protos.master_pb2 import ListClusterNodesRequest
from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicRequest, ConfigureTopicResponse
from kgateway.broker.seaweed.protos.schema_pb2 import Topic
from kgateway.broker.seaweed.reactor_thread import result_of, threaded_reactor
from kgateway.broker.seaweed.security.cluster_access import Role, Security
from kgateway.broker.seaweed.security.cluster_security import TomlSecurity
from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile
from kgateway.cluster.view import Address

HOST = "127.0.0.1"
_GRPC_ABOVE = 10_000  # the gRPC port of a server minus its HTTP port
_PORTS = range(11_000, 22_000)
_SOCKETS = Path("/tmp")  # where `weed` puts its Unix sockets, named after its ports
_PAUSE_S = 0.05
_CALL_S = 5.0
_STOP_S = 3.0
_CONFIGURE = Method("/messaging_pb.SeaweedMessaging/ConfigureTopic", ConfigureTopicRequest, ConfigureTopicResponse)
_PROBE = Topic(namespace="kgateway", name="is-the-broker-ready")


class DevCluster:
    """
    A cluster of two processes that write everything into one folder. It is secured if the folder has a `security.toml`.
    """

    def __init__(self, folder: Path, patience_s: float = 60, filer_group: str = "") -> None:
        self.folder = folder.absolute()
        self._patience_s = patience_s
        self._filer_group = filer_group
        data = self.folder / "data"
        with in_words(self.folder):
            data.mkdir(parents=True, exist_ok=True)
            self._security = _security_in(self.folder)
        self._ports = self._master, self._volume, self._filer, self._broker = free_ports(4)
        self.server = WeedProcess("server", self._server_options(data), self.folder)
        self.broker = WeedProcess("broker", self._broker_options(), self.folder)

    @property
    def masters(self) -> list[str]:
        return [f"{HOST}:{self._master}"]

    @property
    def filer(self) -> str:
        return f"{HOST}:{self._filer}"

    @property
    def broker_address(self) -> str:
        return f"{HOST}:{self._broker}"

    def start(self) -> Self:
        self.start_server()
        self.start_broker()
        return self

    def start_server(self) -> None:
        """
        Start master, volume server and filer, and wait until the master knows the filer.
        """
        self.server.start()
        self._await(self.server, "the master", lambda: self._answers(self._master, "/cluster/healthz"))
        self._await(self.server, "the volume server", lambda: self._answers(self._volume, "/healthz"))
        self._await(self.server, "the filer", lambda: self._answers(self._filer, "/healthz"))
        # A broker that starts before the master knows a filer ends at the first call.
        self._await(self.server, "a filer that the master knows", lambda: self._knows(FILERS))

    def start_broker(self) -> None:
        """
        Start the broker, and wait until it makes topics.
        """
        self.broker.start()
        self._await(self.broker, "a broker that the master knows", lambda: self._knows(BROKERS))
        self._await(self.broker, "a broker that creates topics", self._makes_topics)

    def mend(self) -> None:
        """
        Start what does not run, resume what was paused, and wait until topics can be made.

        Within half a minute after a start topics may be impossible to make once more, for about four seconds.
        """
        for process, start in ((self.server, self.start_server), (self.broker, self.start_broker)):
            if process.is_running:
                process.resume()
            else:
                start()
        self._await(self.broker, "a broker that creates topics", self._makes_topics)

    def stop(self) -> None:
        self.broker.stop(_STOP_S)
        self.server.stop(_STOP_S)  # it would wait for its clients
        self.kill()

    def kill(self) -> None:
        self.broker.kill()
        self.server.kill()
        self._remove_sockets()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _server_options(self, data: Path) -> list[str]:
        ports = {"master": self._master, "volume": self._volume, "filer": self._filer}
        settings = {
            "ip": HOST,  # the address they announce, the same after each start
            "ip.bind": HOST,
            "dir": data,
            "master.peers": "none",
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": 64,
            "volume.max": 100,  # a collection takes seven at once
            "volume.preStopSeconds": 1,
            "filer": "true",
            "filer.filerGroup": self._filer_group,
            "filer.dirListLimit": 100_000,  # a broker counts the log files of a partition by one listing
        }
        settings |= {f"{name}.port": port for name, port in ports.items()}
        settings |= {f"{name}.port.grpc": port + _GRPC_ABOVE for name, port in ports.items()}
        return ["server", *(f"-{name}={value}" for name, value in settings.items())]

    def _broker_options(self) -> list[str]:
        settings = {"master": self.masters[0], "ip": HOST, "port": self._broker, "logFlushInterval": 1}
        settings |= {"filerGroup": self._filer_group}
        return ["mq.broker", *(f"-{name}={value}" for name, value in settings.items())]

    def _await(self, process: WeedProcess, wanted: str, attempt: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._patience_s
        while not attempt():
            if not process.is_running:
                raise NotStarted(f"{process.name} ended; its log {process.log_path} says:\n{process.log_tail()}")
            if time.monotonic() > deadline:
                problem = f"{wanted} did not appear within {self._patience_s:g} s"
                raise NotStarted(f"{problem}; the log {process.log_path} says:\n{process.log_tail()}")
            time.sleep(_PAUSE_S)

    def _knows(self, kind: str) -> bool:
        master = Address(HOST, self._master + _GRPC_ABOVE)
        request = ListClusterNodesRequest(client_type=kind, filer_group=self._filer_group)
        with suppress(RpcError):
            return bool(self.call(Role.MASTER, master, LIST_NODES, request).cluster_nodes)
        return False

    def _makes_topics(self) -> bool:
        request = ConfigureTopicRequest(topic=_PROBE, partition_count=1)
        with suppress(RpcError):
            made = self.call(Role.BROKER, Address(HOST, self._broker), _CONFIGURE, request)
            return all(each.leader_broker for each in made.broker_partition_assignments)
        return False

    def call(
        self,
        role: Role,
        address: Address,
        method: Method[RequestT, ResponseT],
        request: RequestT,
        timeout_s: float = _CALL_S,
    ) -> ResponseT:
        """
        Ask a server over a connection of its own; raises an RpcError if it does not answer in time.
        """

        async def answer() -> ResponseT:
            reactor = threaded_reactor()
            endpoint = self._security.grpc(HostnameEndpoint(reactor, address.host, address.port), role)
            channel = Channel(endpoint.connect, str(address), reactor)
            try:
                return await channel.call(method, request, timeout_s)
            finally:
                await channel.close()

        return result_of(lambda: Deferred.fromCoroutine(answer()))

    def _answers(self, port: int, path: str) -> bool:
        http = HttpClient(threaded_reactor(), Role.FILER, self._security)
        with suppress(RpcError, FilerRefused):
            answer = result_of(lambda: http.ask("GET", Address(HOST, port), path, timeout_s=_CALL_S))
            result_of(http.close)
            return answer.status == HTTPStatus.OK
        return False

    def _remove_sockets(self) -> None:
        for port in self._ports:
            for found in (port, port + _GRPC_ABOVE):
                for path in _SOCKETS.glob(f"seaweedfs-*-{found}.sock"):
                    path.unlink(missing_ok=True)


def _security_in(folder: Path) -> Security:
    path = folder / "security.toml"
    if not path.exists():
        return Security()
    try:
        return TomlSecurity(SecurityFile(path), clock=threaded_reactor())
    except (BadSecurity, OSError) as error:  # also if a certificate is not usable
        raise NotStarted(f"{path} cannot be used: {error}") from error


def free_ports(count: int, among: Sequence[int] = _PORTS) -> list[int]:
    """
    Free ports; the ports 10,000 above them are free, too.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().choice(among)
        if port not in found and _is_free(port) and _is_free(port + _GRPC_ABOVE):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
