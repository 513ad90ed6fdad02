"""
The table of group configs, and the values made from it. Kafka 4.3.1 was asked which values it accepts.
"""

import re

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.group_config import (
    ASSIGNMENT_INTERVAL,
    GROUP_CONFIGS,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    check_group_config,
    group_values,
    read_group_config,
)
from kgateway.config.settings import Settings
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import refusal

# config -> its range in Kafka when nothing is set
_BOUNDS = {
    SESSION_TIMEOUT: (45_000, 60_000),
    HEARTBEAT_INTERVAL: (5_000, 15_000),
    ASSIGNMENT_INTERVAL: (0, 15_000),
}


def _refused(settings: Settings | None = None, **overrides: str) -> str:
    given = {f"consumer.{name.replace('_', '.')}.ms": value for name, value in overrides.items()}
    error = refusal(check_group_config, given, settings or Settings())
    assert error.code == ErrorCode.INVALID_CONFIG
    return str(error.message)


class TableTests(SynchronousTestCase):
    def test_rows(self) -> None:
        """
        Rows are Kafka's, with its defaults, and each has a sentence with its meaning.
        """
        assert {name: row.default for name, row in GROUP_CONFIGS.items()} == {
            SESSION_TIMEOUT: "45000",
            HEARTBEAT_INTERVAL: "5000",
            ASSIGNMENT_INTERVAL: "1000",
        }
        for row in GROUP_CONFIGS.values():
            assert row.synonym == f"group.{row.name}"
            assert re.search(r"^[A-Z].*\.$", row.meaning), row.name


class CheckTests(SynchronousTestCase):
    def test_bounds(self) -> None:
        """
        Values lie within the gateway's limits, inclusive; a refusal names the limit.
        """
        for name, (low, high) in _BOUNDS.items():
            for value in (low, high):
                check_group_config({name: str(value)}, Settings())
            what = name.removeprefix("consumer.")
            above = refusal(check_group_config, {name: str(high + 1)}, Settings())
            assert above.code == ErrorCode.INVALID_CONFIG
            assert above.message == f"{name} must be less than or equal to group.consumer.max.{what}"
            if low:
                below = refusal(check_group_config, {name: str(low - 1)}, Settings())
                assert below.message == f"{name} must be greater than or equal to group.consumer.min.{what}"

    def test_bounds_are_settings(self) -> None:
        """
        Other settings give other limits; the gateway's own values may be outside of them.
        """
        settings = Settings(group_consumer_session_timeout_ms=9, group_consumer_heartbeat_interval_ms=5)
        check_group_config({}, settings)
        assert "greater than or equal to group.consumer.min" in _refused(settings, session_timeout="10")
        check_group_config(
            {SESSION_TIMEOUT: "10"},
            Settings(group_consumer_min_session_timeout_ms=10, group_consumer_heartbeat_interval_ms=5),
        )

    def test_values(self) -> None:
        """
        A value that is not a number, or a number that Kafka refuses, is refused with the allowed ones.
        """
        for text in ("", "fast", "45000.0", "1e5", "0", "-1", "2147483648"):
            message = _refused(session_timeout=text)
            why = "Value must be at least 1" if text in ("0", "-1") else "Not a number of type INT"
            assert message == f"Invalid value {text} for configuration {SESSION_TIMEOUT}: {why}"
        assert "must be at least 0" in _refused(assignment_interval="-1")
        check_group_config({SESSION_TIMEOUT: " +50000 "}, Settings())

    def test_long_texts_are_cut(self) -> None:
        """
        The response has room for the refused text.
        """
        for message in (_refused(session_timeout="9" * 32_767), _refused(None, **{"x" * 32_000: "1"})):
            assert len(message) < 500

    def test_session_outlives_heartbeats(self) -> None:
        """
        A session is longer than the time between two heartbeats, whichever of the two was set.
        """
        close = Settings(group_consumer_max_heartbeat_interval_ms=50_000)
        both = {"session_timeout": "45001", "heartbeat_interval": "45001"}
        assert _refused(close, **both) == f"{SESSION_TIMEOUT} (45001) must be above {HEARTBEAT_INTERVAL} (45001)"
        assert "(45000) must be above" in _refused(close, heartbeat_interval="45000")
        check_group_config({SESSION_TIMEOUT: "45001", HEARTBEAT_INTERVAL: "45000"}, close)

    def test_unknown(self) -> None:
        """
        An unknown name is refused, and the nearest name suggested.
        """
        wrong = {"consumer.sesion.timeout.ms": "50000"}
        error = refusal(check_group_config, wrong, Settings())
        meant = f"did you mean {SESSION_TIMEOUT}?"
        assert error.message == f"Unknown group config name: consumer.sesion.timeout.ms; {meant}"
        assert _refused(nothing="1").startswith("Unknown group config name: consumer.nothing.ms")

    def test_not_served(self) -> None:
        """
        Configs of share and streams groups are refused, because there are no such groups here.
        """
        for kind in ("share", "streams"):
            error = refusal(check_group_config, {f"{kind}.session.timeout.ms": "50000"}, Settings())
            assert error.code == ErrorCode.INVALID_CONFIG
            assert error.message == f"{kind}.session.timeout.ms is for {kind} groups, which are not served here"


class ValuesTests(SynchronousTestCase):
    def test_nothing_set(self) -> None:
        """
        The settings apply, whatever the limits are.
        """
        settings = Settings(group_consumer_session_timeout_ms=7, group_consumer_assignment_interval_ms=20_000)
        assert group_values({}, settings) == {
            SESSION_TIMEOUT: 7,
            HEARTBEAT_INTERVAL: 5_000,
            ASSIGNMENT_INTERVAL: 20_000,
        }

    def test_other_bounds(self) -> None:
        """
        A value set within former limits is brought within the current ones.
        """
        for name, (low, high) in _BOUNDS.items():
            for value, holds in ((high + 1, high), (max(low - 1, 0), low), (high, high)):
                if value or name == ASSIGNMENT_INTERVAL:
                    assert group_values({name: str(value)}, Settings())[name] == holds

    def test_read(self) -> None:
        """
        A stored value is read as written.
        """
        assert read_group_config({SESSION_TIMEOUT: "7", HEARTBEAT_INTERVAL: " 9"}) == {
            SESSION_TIMEOUT: 7,
            HEARTBEAT_INTERVAL: 9,
        }
