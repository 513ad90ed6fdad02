"""
A gRPC server by grpcio, the other side of a channel. A process of its own runs it by
`python -m tests.broker.seaweed.grpc.grpcio_server`.
"""

import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.wrappers_pb2 import BytesValue

from kgateway.broker.seaweed.grpc.call_headers import Method

SERVICE = "test.Test"
_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


def method(name: str) -> Method[BytesValue, BytesValue]:
    return Method(f"/{SERVICE}/{name}", BytesValue, BytesValue)


class Service:
    """
    The methods that can be called: a server stream answers each message of its request, a slow method waits until it is
    cancelled.
    """

    def __init__(self) -> None:
        self.metadata: list[tuple[str, str | bytes]] = []
        self.has_begun, self.is_over = threading.Semaphore(0), threading.Semaphore(0)  # slow calls

    def echo(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self.metadata = list(context.invocation_metadata())
        return request

    def fail(self, request: bytes, context: grpc.ServicerContext) -> Any:
        return context.abort(grpc.StatusCode.FAILED_PRECONDITION, BytesValue.FromString(request).value.decode())

    def count(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        for number in range(int(request)):
            yield b"%d" % number

    def long(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        for size in request.split(b","):
            yield bytes(int(size))

    def slow(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        over = threading.Event()
        if not context.add_callback(over.set):
            over.set()  # it was over before it began
        self.has_begun.release()
        over.wait()
        self.is_over.release()
        return b""

    def each(self, requests: Iterable[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        yield from requests

    def first(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        yield next(requests)

    def handler(self) -> grpc.GenericRpcHandler:
        """
        The handler of all methods, over bytes.
        """
        unary, stream, both = (
            grpc.unary_unary_rpc_method_handler,
            grpc.unary_stream_rpc_method_handler,
            grpc.stream_stream_rpc_method_handler,
        )
        handlers = {
            "Echo": unary(self.echo),
            "Fail": unary(self.fail),
            "Slow": unary(self.slow),
            "Count": stream(self.count),
            "Long": stream(self.long),
            "Each": both(self.each),
            "First": both(self.first),
        }
        return grpc.method_handlers_generic_handler(SERVICE, handlers)


class Server:
    """
    A server that runs in threads of this process.
    """

    def __init__(self, credentials: grpc.ServerCredentials | None = None, *options: tuple[str, Any]) -> None:
        self.service = Service()
        self.server = grpc.server(ThreadPoolExecutor(16), options=(*_OPTIONS, *options))
        self.server.add_generic_rpc_handlers((self.service.handler(),))
        if credentials:
            self.port = self.server.add_secure_port("127.0.0.1:0", credentials)
        else:
            self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def stop(self, grace: float | None = None) -> None:
        """
        Stop the server, and wait until it has ended.
        """
        self.server.stop(grace).wait()


def main() -> None:
    """
    Serve until standard input ends.
    """
    server = Server()
    print(server.port, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
