"""
How a call ends: gRPC's status codes, and what those of HTTP mean if a peer gives none of gRPC's.
"""

from enum import IntEnum

from h2.errors import ErrorCodes


class Status(IntEnum):
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @classmethod
    def of(cls, text: bytes) -> "Status":
        """
        The code that a peer has written; UNKNOWN if there is no such code.
        """
        try:
            return cls(int(text))
        except ValueError:
            return cls.UNKNOWN


class RpcError(Exception):
    def __init__(self, status: Status, message: str) -> None:
        super().__init__(status, message)
        self.status, self.message = status, message

    def __str__(self) -> str:
        return f"{self.status.name}: {self.message}"


class CallNotProcessed(RpcError):
    """
    The peer says that it has not begun to process the call, which may be made again without doing anything twice.
    """

    def __init__(self, message: str) -> None:
        super().__init__(Status.UNAVAILABLE, message)


_OF_HTTP = {
    400: Status.INTERNAL,
    401: Status.UNAUTHENTICATED,
    403: Status.PERMISSION_DENIED,
    404: Status.UNIMPLEMENTED,
    429: Status.UNAVAILABLE,
    502: Status.UNAVAILABLE,
    503: Status.UNAVAILABLE,
    504: Status.UNAVAILABLE,
}

_OF_RESET: dict[int, Status] = {
    ErrorCodes.NO_ERROR: Status.INTERNAL,
    ErrorCodes.PROTOCOL_ERROR: Status.INTERNAL,
    ErrorCodes.INTERNAL_ERROR: Status.INTERNAL,
    ErrorCodes.FLOW_CONTROL_ERROR: Status.INTERNAL,
    ErrorCodes.SETTINGS_TIMEOUT: Status.INTERNAL,
    ErrorCodes.FRAME_SIZE_ERROR: Status.INTERNAL,
    ErrorCodes.CANCEL: Status.CANCELLED,
    ErrorCodes.COMPRESSION_ERROR: Status.INTERNAL,
    ErrorCodes.CONNECT_ERROR: Status.INTERNAL,
    ErrorCodes.ENHANCE_YOUR_CALM: Status.RESOURCE_EXHAUSTED,
    ErrorCodes.INADEQUATE_SECURITY: Status.PERMISSION_DENIED,
}


def of_http(status: int) -> Status:
    """
    The status for a response that only has one of HTTP.
    """
    return _OF_HTTP.get(status, Status.UNKNOWN)


def of_reset(code: int) -> RpcError:
    message = f"the peer reset the stream: {getattr(code, 'name', code)}"
    if code == ErrorCodes.REFUSED_STREAM:
        return CallNotProcessed(message)
    return RpcError(_OF_RESET.get(code, Status.UNKNOWN), message)
