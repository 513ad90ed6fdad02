"""
The headers of a call.
"""

import pytest

from kgateway.broker.seaweed.grpc.call_headers import RequestHeaders, timeout_text


def test_a_request_says_what_grpc_asks_for() -> None:
    request = RequestHeaders("/filer_pb.SeaweedFiler/KvGet", [("authorization", "Bearer x")], deadline=12.5)
    assert request.headers("http", "filer:18888", now=10.0) == [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/filer_pb.SeaweedFiler/KvGet"),
        (":authority", "filer:18888"),
        ("grpc-timeout", "2500m"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", "kgateway"),
        ("grpc-accept-encoding", "identity"),
        ("authorization", "Bearer x"),
    ]


def test_without_a_deadline_there_is_no_timeout() -> None:
    assert "grpc-timeout" not in dict(RequestHeaders("/a/b", [], None).headers("http", "a", 0))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "5000m"), (4.9999996, "5000m"), (0, "1m"), (-1, "1m"), (99_999.999, "99999999m"), (100_000, "100000S")],
)
def test_a_timeout_is_written_with_at_most_eight_digits(seconds: float, text: str) -> None:
    assert timeout_text(seconds) == text
    assert timeout_text(1e12) == "99999999S"
