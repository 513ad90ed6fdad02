"""
The commands of operators to a running gateway.
"""

import json
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.logger import LogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kgateway.control.commands import commands
from kgateway.control.connections import Connections
from kgateway.control.protocol import CommandError
from kgateway.observe.levels import LogLevels
from kgateway.observe.profile import Profiler
from kgateway.observe.reasons import ReasonKind, Reasons
from kgateway.wire.errors import ErrorCode

PLUGINS = [
    {"key": key, "api": api, "versions": "0-13", "handler": f"kgateway.handlers.{api.lower()}"}
    for key, api in ((3, "Metadata"), (1, "Fetch"), (0, "Produce"))
]
CLIENT = SimpleNamespace(listener="a", host="::1", principal="User:me", software="sarama", software_version="1.43")


class CommandTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reasons = Reasons(capacity=50)
        self.levels = LogLevels(LogPublisher())
        self.clock = Clock()
        connections = Connections(list, self.clock)
        self.commands = commands(self.reasons, lambda: PLUGINS, self.levels, Profiler(self.clock), connections)

    def begin(self, name: str, **arguments: Any) -> Deferred[Any]:
        """
        The result of a command, once it is complete.
        """
        return maybeDeferred(self.commands[name], arguments)

    def do(self, name: str, **arguments: Any) -> Any:
        """
        The immediate result of a command, decoded from JSON.
        """
        return json.loads(json.dumps(self.successResultOf(self.begin(name, **arguments))))

    def refusal(self, name: str, **arguments: Any) -> str:
        """
        The reason why a command is refused.
        """
        return str(self.failureResultOf(self.begin(name, **arguments), CommandError).value)

    def refuse(self, subject: str, **changes: Any) -> None:
        """
        Make the gateway refuse a client's request.
        """
        what: dict[str, Any] = {"client_id": "c", "api": "Fetch", "version": 4, "code": ErrorCode.OFFSET_OUT_OF_RANGE}
        self.reasons.remember(1000, CLIENT, "105 is past the end", **what | {"subject": subject} | changes)

    def subjects(self, **arguments: Any) -> list[str]:
        """
        The subjects of the requested reasons.
        """
        return [reason["subject"] for reason in self.do("why", **arguments)["reasons"]]

    def test_why_has_all_details(self) -> None:
        """
        A reason has the names of its kind and code; the result has the number of reasons stored.
        """
        self.refuse("orders-3")
        reason = {"when_ms": 1000, "since_ms": 1000, "client_id": "c", "host": "::1", "listener": "a"}
        reason |= {"principal": "User:me", "software": "sarama", "software_version": "1.43", "api": "Fetch"}
        reason |= {"version": 4, "kind": "refused", "code": "OFFSET_OUT_OF_RANGE", "subject": "orders-3"}
        reason |= {"message": "105 is past the end", "times": 1, "outcome": "OFFSET_OUT_OF_RANGE"}
        assert self.do("why") == {"remembered": 1, "steps": 0, "reasons": [reason]}

    def test_why_of_a_closed_connection_has_no_code(self) -> None:
        """
        The kind says what happened.
        """
        self.refuse("", code=None, kind=ReasonKind.MALFORMED)
        (reason,) = self.do("why")["reasons"]
        assert (reason["code"], reason["kind"], reason["outcome"]) == (None, "malformed", "malformed")

    def test_why_returns_the_latest_twenty(self) -> None:
        """
        An option changes the number, up to all.
        """
        for number in range(50):
            self.refuse(str(number))
        assert self.subjects() == [str(number) for number in range(30, 50)]
        assert self.subjects(limit=2) == ["48", "49"]
        assert len(self.subjects(limit=50)) == 50

    def test_why_filters(self) -> None:
        """
        Client, API and code each limit the result.
        """
        self.refuse("1", client_id="billing-1")
        self.refuse("2", api="Produce")
        self.refuse("3", code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.refuse("4", code=None, kind=ReasonKind.CLOSED)
        assert self.subjects(client="billing*") == ["1"]
        assert self.subjects(api="produce") == ["2"]
        assert self.subjects(code="not_leader_or_follower") == ["3"]
        assert self.subjects(code="closed") == ["4"]

    def test_why_leaves_out_the_steps_of_the_protocol(self) -> None:
        """
        They do not count against the limit, and are shown if all reasons or their code are asked for.
        """
        self.refuse("refused")
        self.refuse("join", api="JoinGroup", code=ErrorCode.MEMBER_ID_REQUIRED)
        self.refuse("probe", api="ConsumerGroupDescribe", code=ErrorCode.GROUP_ID_NOT_FOUND)
        self.refuse("gone", api="DescribeGroups", code=ErrorCode.GROUP_ID_NOT_FOUND)
        assert self.subjects(limit=2) == ["refused", "gone"]
        assert self.do("why")["steps"] == 2
        assert self.do("why", client="nobody")["steps"] == 0
        assert self.subjects(all=True) == ["refused", "join", "probe", "gone"]
        assert self.subjects(code="MEMBER_ID_REQUIRED") == ["join"]
        assert self.refusal("why", all=1) == "all must be true or false, not 1"

    def test_why_of_an_unknown_code(self) -> None:
        """
        It is refused, because an empty list would look like an answer. Only a similar code is suggested.
        """
        told = self.refusal("why", code="OFFSET_OUT_OF_RANG")
        assert told == "there is no error code OFFSET_OUT_OF_RANG; did you mean OFFSET_OUT_OF_RANGE?"
        assert self.refusal("why", code="malform").endswith("did you mean malformed?")
        assert self.refusal("why", code="FOO") == "there is no error code FOO"

    def test_why_of_an_unknown_api(self) -> None:
        """
        It is refused too; the names are those of the handlers.
        """
        assert self.refusal("why", api="Metdata") == "there is no API Metdata; did you mean Metadata?"
        assert self.refusal("why", api="Foo") == "there is no API Foo; choose from Metadata, Fetch, Produce"

    def test_why_since(self) -> None:
        """
        What came before is left out.
        """
        for when_ms in (1000, 2000, 3000):
            self.reasons.remember(when_ms, CLIENT, "past the end", subject=str(when_ms))
        assert self.subjects(since_ms=2000) == ["2000", "3000"]

    def test_a_limit_has_bounds(self) -> None:
        """
        The least is one, the most is the capacity.
        """
        for limit in (0, 51, "20", True, None, float("nan")):
            assert self.refusal("why", limit=limit).startswith("limit must be a number from 1 to 50, not "), limit

    def test_a_pattern_is_a_text(self) -> None:
        """
        Other types are refused in words.
        """
        assert self.refusal("why", client=7) == "client must be a string, not 7"

    def test_unknown_arguments_are_refused(self) -> None:
        """
        Otherwise a newer client might take the result for what it asked for.
        """
        for name in self.commands:
            assert self.refusal(name, since="noon", until="one") == "the command takes no since, until"

    def test_plugins_are_listed(self) -> None:
        """
        The result has the gateway's current rows.
        """
        assert self.do("plugins") == {"plugins": PLUGINS}

    def test_the_level_is_shown(self) -> None:
        """
        Without an argument nothing changes.
        """
        assert self.do("loglevel") == {"level": "info", "before": "info"}
        assert self.levels.level == "info"

    def test_the_level_is_set(self) -> None:
        """
        Case does not matter; the result has the previous level.
        """
        assert self.do("loglevel", level="Debug") == {"level": "debug", "before": "info"}
        assert self.levels.level == "debug"

    def test_an_unknown_level_is_refused(self) -> None:
        """
        A similar level is suggested, else all are listed; the level does not change.
        """
        told = self.refusal("loglevel", level="WARNING")
        assert told == "there is no log level WARNING; did you mean warn?"
        told = self.refusal("loglevel", level="verbose")
        assert told == "there is no log level verbose; choose from debug, info, warn, error, critical"
        assert self.levels.level == "info"

    def test_a_profile_is_complete_after_its_seconds(self) -> None:
        """
        It has its duration, the reactor's idle time, and its rows.
        """
        result = self.begin("profile", seconds=0.1)
        self.clock.advance(0)
        self.assertNoResult(result)
        self.clock.advance(0.1)
        profile = self.successResultOf(result)
        assert (profile["seconds"], profile["waiting_s"]) == (0.1, 0)
        assert profile["rows"][0].keys() == {"own_s", "total_s", "calls", "function"}

    def test_a_profile_takes_ten_seconds_by_default(self) -> None:
        """
        That is long enough to be typical, and short enough to wait for.
        """
        result = self.begin("profile")
        self.clock.pump([0, 9.9])
        self.assertNoResult(result)
        self.clock.advance(0.1)
        assert self.successResultOf(result)["seconds"] == 10

    def test_the_seconds_of_a_profile_have_bounds(self) -> None:
        """
        A profile slows the gateway down, so it ends within a minute.
        """
        for seconds, shown in ((0, "0"), (0.09, "0.09"), (60.1, "60.1"), ("1", "'1'"), (-1.0, "-1")):
            assert self.refusal("profile", seconds=seconds) == f"seconds must be a number from 0.1 to 60, not {shown}"

    def test_a_second_profile_is_refused(self) -> None:
        """
        The refusal is in words, and the first profile continues.
        """
        first = self.begin("profile")
        told = self.refusal("profile")
        assert told == "a profile is already being made: try again when it is done"
        self.clock.pump([0, 10])
        self.successResultOf(first)
