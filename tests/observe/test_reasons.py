"""
The reasons of refusals to clients.
"""

from dataclasses import dataclass
from typing import Any

from kgateway.observe.reasons import ReasonKind, Reasons
from kgateway.wire.errors import ErrorCode


@dataclass
class Client:
    listener: str = "plaintext"
    host: str = "10.0.0.7"
    principal: str = "User:ANONYMOUS"
    software: str = "librdkafka"
    software_version: str = "2.3.0"


def remember(reasons: Reasons, when_ms: int = 1000, host: str = "10.0.0.7", **changes: Any) -> None:
    """
    Store a refused Fetch of one partition.
    """
    what: dict[str, Any] = {"client_id": "checkout", "api": "Fetch", "version": 13, "message": "105 is past the end"}
    reasons.remember(when_ms, Client(host=host), **what | {"code": ErrorCode.OFFSET_OUT_OF_RANGE} | changes)


def subjects(reasons: Reasons, **asked: Any) -> list[str]:
    """
    The subjects of the matching reasons.
    """
    return [reason.subject for reason in reasons.latest(100, **asked)]


def test_a_reason_has_all_details() -> None:
    """
    All that is known at the refusal is kept.
    """
    reasons = Reasons()
    remember(reasons, subject="orders-3")
    (reason,) = reasons.latest(10)
    assert reason == (
        *(1000, 1000, "checkout", "10.0.0.7", "plaintext", "User:ANONYMOUS", "librdkafka", "2.3.0"),
        *("Fetch", 13, ReasonKind.REFUSED, ErrorCode.OFFSET_OUT_OF_RANGE, "orders-3", "105 is past the end", 1),
    )


def test_the_latest_are_last() -> None:
    """
    Beyond the limit the newest are returned, in order of arrival.
    """
    reasons = Reasons()
    for subject in ("a", "b", "c"):
        remember(reasons, subject=subject)
    assert [reason.subject for reason in reasons.latest(2)] == ["b", "c"]


def test_the_oldest_is_dropped() -> None:
    """
    A full memory drops the oldest reason.
    """
    reasons = Reasons(capacity=2)
    for subject in ("a", "b", "c"):
        remember(reasons, subject=subject)
    assert subjects(reasons) == ["b", "c"]
    assert len(reasons) == 2


def test_a_repeated_reason_is_counted() -> None:
    """
    It takes one place, with its first and last time.
    """
    reasons = Reasons()
    remember(reasons, 1000)
    remember(reasons, 2000)
    remember(reasons, 3000)
    (reason,) = reasons.latest(10)
    assert (reason.since_ms, reason.when_ms, reason.times) == (1000, 3000, 3)


def test_polling_clients_displace_nothing() -> None:
    """
    Two clients that are refused by turns, again and again, displace no older reasons.
    """
    reasons = Reasons(capacity=3)
    remember(reasons, subject="before")
    for turn in range(10):
        remember(reasons, client_id=f"poller-{turn % 2}", subject="polled")
    assert subjects(reasons) == ["before", "polled", "polled"]


def test_a_repeated_reason_is_the_latest() -> None:
    """
    It moves to the end, and is kept longer than those in between.
    """
    reasons = Reasons(capacity=2)
    for subject in ("a", "b", "a", "c"):
        remember(reasons, subject=subject)
    assert subjects(reasons) == ["a", "c"]


def test_any_difference_makes_another_reason() -> None:
    """
    Reasons may differ in client, host, API, version, code, subject or message.
    """
    reasons = Reasons()
    changes: list[dict[str, Any]] = [
        {},
        {"client_id": "other"},
        {"host": "10.0.0.8"},
        {"api": "Produce"},
        {"version": 12},
        {"code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
        {"subject": "orders-4"},
        {"message": "99 is before the start at 100"},
        {"kind": ReasonKind.FAILED},
    ]
    for change in changes:
        remember(reasons, **change)
    assert len(reasons) == len(changes)


def test_long_texts_are_cut() -> None:
    """
    A client cannot fill the memory with long names.
    """
    reasons = Reasons()
    remember(reasons, client_id="i" * 30_000, subject="s" * 30_000, message="m" * 30_000)
    (reason,) = reasons.latest(1)
    assert [len(text) for text in (reason.client_id, reason.subject, reason.message)] == [400, 400, 400]
    assert reason.message.endswith("m…")


def test_software_names_are_cut() -> None:
    """
    Clients choose them, too.
    """
    reasons = Reasons()
    reasons.remember(0, Client(software="s" * 30_000, software_version="v" * 30_000), "no")
    (reason,) = reasons.latest(1)
    assert (len(reason.software), len(reason.software_version)) == (400, 400)


def test_a_closed_connection_has_a_reason_without_a_code() -> None:
    """
    The kind says what happened; client id and API may be missing.
    """
    reasons = Reasons()
    reasons.remember(0, Client(), "this looks like HTTP", kind=ReasonKind.MALFORMED)
    (reason,) = reasons.latest(1)
    assert (reason.client_id, reason.api, reason.code, reason.outcome) == ("", "", None, "malformed")


def test_reasons_of_a_client() -> None:
    """
    The pattern matches the client id or the host.
    """
    reasons = Reasons()
    remember(reasons, client_id="checkout-1", subject="by id")
    remember(reasons, client_id="billing", host="192.168.1.1", subject="by host")
    assert subjects(reasons, client="check*-?") == ["by id"]
    assert subjects(reasons, client="192.168.*") == ["by host"]
    assert subjects(reasons, client="CHECKOUT-1") == []


def test_reasons_of_an_api() -> None:
    """
    The whole name has to match, in any case.
    """
    reasons = Reasons()
    remember(reasons, api="Fetch", subject="fetch")
    remember(reasons, api="OffsetFetch", subject="offsets")
    assert subjects(reasons, api="fetch") == ["fetch"]


def test_reasons_of_an_outcome() -> None:
    """
    The outcome is the name of a code, or the kind.
    """
    reasons = Reasons()
    remember(reasons, subject="refused")
    remember(reasons, subject="failed", kind=ReasonKind.FAILED, code=ErrorCode.UNKNOWN_SERVER_ERROR)
    remember(reasons, subject="closed", kind=ReasonKind.CLOSED, code=None)
    assert subjects(reasons, outcome="offset_out_of_range") == ["refused"]
    assert subjects(reasons, outcome="Failed") == ["failed"]
    assert subjects(reasons, outcome="UNKNOWN_SERVER_ERROR") == ["failed"]
    assert subjects(reasons, outcome="closed") == ["closed"]


def test_the_limit_counts_matches() -> None:
    """
    Reasons that do not match take no place in the result.
    """
    reasons = Reasons()
    remember(reasons, api="Produce", subject="wanted")
    remember(reasons, api="Fetch", subject="newer")
    assert [reason.subject for reason in reasons.latest(1, api="Produce")] == ["wanted"]
