"""
A cluster of SeaweedFS and SeaweedMQ on this machine, to try things out on and to test with. The master, a volume server
and a single filer are in one process. Brokers, several filers and further volume servers have processes of their own.

Every port is chosen by us, below those that the system gives to outgoing connections: a process that is started again
finds its own free.
"""

import random
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
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
_STORE = "filer.toml"  # in the folder; the default is a LevelDB for each filer
_SHARED_STORE = """\
# All filers of this cluster share one store.
[sqlite]
enabled = true
dbFile = "{folder}/data/filer.db"
"""


@dataclass(frozen=True)
class Shape:
    """
    How many servers a cluster has. Several filers share a store, as gateways demand, unless a test wants to see why.
    """

    filers: int = 1
    brokers: int = 1
    volume_servers: int = 1
    flush_interval_s: int = 1  # until a broker writes messages to a file
    has_shared_store: bool = True


class DevCluster:
    """
    A cluster whose processes write everything into one folder. It is secured if the folder has a `security.toml`.
    """

    def __init__(
        self,
        folder: Path,
        patience_s: float = 60,
        filer_group: str = "",
        shape: Shape = Shape(),
    ) -> None:
        self.folder = folder.absolute()
        self._patience_s = patience_s
        self._filer_group = filer_group
        self._shape = shape
        self._data = self.folder / "data"
        with in_words(self.folder):
            self._data.mkdir(parents=True, exist_ok=True)
            self._security = _security_in(self.folder)
            self._prepare_store()
        self._ports = free_ports(1 + shape.volume_servers + shape.filers + shape.brokers)
        ports = iter(self._ports)
        self._master = next(ports)
        self._volume, *more_volumes = islice(ports, shape.volume_servers)
        self._filers = list(islice(ports, shape.filers))
        self._brokers = list(ports)
        self.server = WeedProcess("server", self._server_options(), self.folder)
        self.more_volume_servers = self._processes("volume", more_volumes, self._volume_options, 2)
        self.filers = self._processes("filer", self._filers, self._filer_options) if shape.filers > 1 else []
        self.broker, *self.more_brokers = self._processes("broker", self._brokers, self._broker_options)

    @property
    def masters(self) -> list[str]:
        return [f"{HOST}:{self._master}"]

    @property
    def filer(self) -> str:
        return self.filer_addresses[0]

    @property
    def filer_addresses(self) -> list[str]:
        return [f"{HOST}:{port}" for port in self._filers]

    @property
    def broker_address(self) -> str:
        return self.broker_addresses[0]

    @property
    def broker_addresses(self) -> list[str]:
        return [f"{HOST}:{port}" for port in self._brokers]

    def start(self) -> Self:
        self.start_server()
        self.start_broker()
        return self

    def start_server(self) -> None:
        """
        Start the master, the volume servers and the filers, and wait until the master knows the filers.
        """
        self.server.start()
        self._await(self.server, "the master", lambda: self._answers(self._master, "/cluster/healthz"))
        self._await(self.server, "the volume server", lambda: self._answers(self._volume, "/healthz"))
        for process in self.more_volume_servers:
            process.start()
        if self.filers:
            for index in range(len(self.filers)):
                self.start_filer(index)
        else:
            self._await_filer(self.server, self._filers[0])

    def start_filer(self, index: int) -> None:
        """
        Start one of several filers, and wait until the master knows it.
        """
        self.filers[index].start()
        self._await_filer(self.filers[index], self._filers[index])

    def start_broker(self) -> None:
        """
        Start the brokers, and wait until the first one makes topics.
        """
        for process, port in zip(self._broker_processes, self._brokers, strict=True):
            process.start()
            self._await_known(process, "broker", BROKERS, port)
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
        for process in reversed(self._processes_in_order):
            process.stop(_STOP_S)  # a server would wait for its clients
        self.kill()

    def kill(self) -> None:
        for process in reversed(self._processes_in_order):
            process.kill()
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

    @property
    def _broker_processes(self) -> list[WeedProcess]:
        return [self.broker, *self.more_brokers]

    @property
    def _processes_in_order(self) -> list[WeedProcess]:
        return [self.server, *self.more_volume_servers, *self.filers, *self._broker_processes]

    def _processes(
        self, kind: str, ports: Sequence[int], options: Callable[[str, int], list[str]], first: int = 1
    ) -> list[WeedProcess]:
        """
        A process for each port, such as broker, broker2 and broker3.
        """
        names = [kind if number == 1 else f"{kind}{number}" for number in range(first, first + len(ports))]
        return [WeedProcess(name, options(name, port), self.folder) for name, port in zip(names, ports, strict=True)]

    def _prepare_store(self) -> None:
        path = self.folder / _STORE
        if self._shape.filers == 1 or not self._shape.has_shared_store or path.exists():
            return
        if any(self._data.glob("filerldb*")):
            raise NotStarted(f"{self.folder} has the data of a cluster with one filer. Name another folder")
        path.write_text(_SHARED_STORE.format(folder=self.folder))

    def _server_options(self) -> list[str]:
        ports = {"master": self._master, "volume": self._volume}
        settings: dict[str, object] = {
            "ip": HOST,  # the address they announce, the same after each start
            "ip.bind": HOST,
            "dir": self._data,
            "master.peers": "none",
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": 64,
            "volume.max": 100,  # a collection takes seven at once
            "volume.preStopSeconds": 1,
            "filer": "false",
        }
        if self._shape.filers == 1:
            ports["filer"] = self._filers[0]
            settings |= {
                "filer": "true",
                "filer.filerGroup": self._filer_group,
                "filer.dirListLimit": 100_000,  # a broker counts the log files of a partition by one listing
            }
        settings |= {f"{name}.port": port for name, port in ports.items()}
        settings |= {f"{name}.port.grpc": port + _GRPC_ABOVE for name, port in ports.items()}
        return ["server", *_options(settings)]

    def _volume_options(self, name: str, port: int) -> list[str]:
        settings = {"dir": self._data_folder(name), "max": 100, "preStopSeconds": 1}
        return ["volume", *_options({**self._common_settings(port), **settings})]

    def _filer_options(self, name: str, port: int) -> list[str]:
        settings = {"filerGroup": self._filer_group, "defaultStoreDir": self._data_folder(name)}
        return ["filer", *_options({**self._common_settings(port), **settings})]

    def _broker_options(self, name: str, port: int) -> list[str]:
        settings = {"filerGroup": self._filer_group, "logFlushInterval": self._shape.flush_interval_s}
        return ["mq.broker", *_options({**self._common_settings(port), **settings})]

    def _common_settings(self, port: int) -> dict[str, object]:
        return {"master": self.masters[0], "ip": HOST, "port": port}

    def _data_folder(self, name: str) -> Path:
        folder = self._data / name
        with in_words(folder):
            folder.mkdir(exist_ok=True)
        return folder

    def _await_filer(self, process: WeedProcess, port: int) -> None:
        self._await(process, "the filer", lambda: self._answers(port, "/healthz"))
        # A broker that starts before the master knows a filer ends at the first call.
        self._await_known(process, "filer", FILERS, port)

    def _await_known(self, process: WeedProcess, name: str, kind: str, port: int) -> None:
        self._await(process, f"a {name} that the master knows", lambda: self._knows(kind, port))

    def _await(self, process: WeedProcess, wanted: str, attempt: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._patience_s
        while not attempt():
            if not process.is_running:
                raise NotStarted(f"{process.name} ended; its log {process.log_path} says:\n{process.log_tail()}")
            if time.monotonic() > deadline:
                problem = f"{wanted} did not appear within {self._patience_s:g} s"
                raise NotStarted(f"{problem}; the log {process.log_path} says:\n{process.log_tail()}")
            time.sleep(_PAUSE_S)

    def _knows(self, kind: str, port: int) -> bool:
        master = Address(HOST, self._master + _GRPC_ABOVE)
        request = ListClusterNodesRequest(client_type=kind, filer_group=self._filer_group)
        with suppress(RpcError):
            nodes = self.call(Role.MASTER, master, LIST_NODES, request).cluster_nodes
            # The address of a filer ends in a dot and its gRPC port, that of a broker does not.
            return any(re.fullmatch(rf"{HOST}:{port}(\.\d+)?", node.address) for node in nodes)
        return False

    def _makes_topics(self) -> bool:
        request = ConfigureTopicRequest(topic=_PROBE, partition_count=1)
        with suppress(RpcError):
            made = self.call(Role.BROKER, Address(HOST, self._brokers[0]), _CONFIGURE, request)
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


def _options(settings: Mapping[str, object]) -> list[str]:
    return [f"-{name}={value}" for name, value in settings.items()]


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
