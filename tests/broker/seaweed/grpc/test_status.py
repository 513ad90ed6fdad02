"""
What peers say about how a call ended.
"""

import pytest
from h2.errors import ErrorCodes

from kgateway.broker.seaweed.grpc.call_headers import ResponseHeaders
from kgateway.broker.seaweed.grpc.status import RpcError, Status, of_reset

_HEADERS = [(b":status", b"200"), (b"content-type", b"application/grpc+proto")]


def _outcome(*headers: tuple[bytes, bytes]) -> tuple[Status, str]:
    answer = ResponseHeaders()
    answer.add(headers)
    error = answer.outcome()
    return (error.status, error.message) if error else (Status.OK, "")


def test_all_is_well_with_status_0() -> None:
    answer = ResponseHeaders()
    answer.add(_HEADERS)
    answer.add([(b"grpc-status", b"0"), (b"x-amz-request-id", b"17")])
    assert answer.has_messages
    assert answer.outcome() is None


def test_a_message_is_percent_decoded() -> None:
    found = _outcome(*_HEADERS, (b"grpc-status", b"5"), (b"grpc-message", b"no %22caf%C3%A9%22 %zz 100%"))
    assert found == (Status.NOT_FOUND, 'no "café" %zz 100%')


@pytest.mark.parametrize("text", [b"17", b"-1", b"", b"well"])
def test_a_code_that_is_none_is_unknown(text: bytes) -> None:
    assert _outcome(*_HEADERS, (b"grpc-status", text))[0] is Status.UNKNOWN


def test_an_answer_without_status_is_unknown() -> None:
    assert _outcome(*_HEADERS) == (Status.UNKNOWN, "the response ended without a status")


@pytest.mark.parametrize(
    ("http", "status"),
    [
        (b"400", Status.INTERNAL),
        (b"401", Status.UNAUTHENTICATED),
        (b"403", Status.PERMISSION_DENIED),
        (b"404", Status.UNIMPLEMENTED),
        (b"418", Status.UNKNOWN),
        (b"429", Status.UNAVAILABLE),
        (b"500", Status.UNKNOWN),
        (b"502", Status.UNAVAILABLE),
        (b"503", Status.UNAVAILABLE),
        (b"504", Status.UNAVAILABLE),
        (b"odd", Status.UNKNOWN),
    ],
)
def test_a_status_of_http_counts_where_there_is_none_of_grpc(http: bytes, status: Status) -> None:
    assert _outcome((b":status", http))[0] is status
    assert _outcome((b":status", http), (b"grpc-status", b"6"))[0] is Status.ALREADY_EXISTS


def test_what_is_not_grpc_has_no_messages() -> None:
    answer = ResponseHeaders()
    answer.add([(b":status", b"200"), (b"content-type", b"text/html")])
    assert not answer.has_messages
    error = answer.outcome()
    assert error
    assert (error.status, error.message) == (Status.UNKNOWN, "the peer answered with text/html, which is not gRPC")


def test_an_error_of_http_has_no_messages_whatever_it_says_of_itself() -> None:
    answer = ResponseHeaders()
    answer.add([(b":status", b"503"), (b"content-type", b"application/grpc")])
    assert not answer.has_messages


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ErrorCodes.NO_ERROR, Status.INTERNAL),
        (ErrorCodes.REFUSED_STREAM, Status.UNAVAILABLE),
        (ErrorCodes.CANCEL, Status.CANCELLED),
        (ErrorCodes.ENHANCE_YOUR_CALM, Status.RESOURCE_EXHAUSTED),
        (ErrorCodes.INADEQUATE_SECURITY, Status.PERMISSION_DENIED),
        (ErrorCodes.STREAM_CLOSED, Status.UNKNOWN),
        (99, Status.UNKNOWN),
    ],
)
def test_a_reset_says_what_grpc_says_it_means(code: int, status: Status) -> None:
    assert of_reset(code).status is status


def test_an_error_reads_well() -> None:
    assert str(RpcError(Status.NOT_FOUND, "no such thing")) == "NOT_FOUND: no such thing"
    assert str(of_reset(ErrorCodes.CANCEL)) == "CANCELLED: the peer reset the stream: CANCEL"
