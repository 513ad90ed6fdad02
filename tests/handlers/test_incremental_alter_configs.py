"""
IncrementalAlterConfigs.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from handlers.incremental_alter_configs import incremental_alter_configs
from kgateway.cluster.config_resource import group
from kgateway.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.serving import Denying, Serving

GROUP = 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
VERSIONS = range(2)

Asked = IncrementalAlterConfigsRequest.Resource
Answer = IncrementalAlterConfigsResponse.Response


def _asked(name: str, *changes: tuple[str, int, str | None], kind: int = GROUP) -> Asked:
    configs = [Asked.Config(name=key, config_operation=operation, value=value) for key, operation, value in changes]
    return Asked(resource_type=kind, resource_name=name, configs=configs)


def _set(name: str, **values: str) -> Asked:
    return _asked(name, *((f"consumer.{key.replace('_', '.')}.ms", SET, value) for key, value in values.items()))


class IncrementalAlterConfigsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def begin(self, *resources: Asked, version: int = 1, validate_only: bool = False) -> Deferred[Any]:
        request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
        return self.serving.ask(incremental_alter_configs, request, version)

    def ask(self, *resources: Asked, **more: Any) -> list[Answer]:
        answers: list[Answer] = self.successResultOf(self.begin(*resources, **more)).responses
        told = [(answer.resource_type, answer.resource_name) for answer in answers]
        assert told == [(asked.resource_type, asked.resource_name) for asked in resources]
        return answers

    def codes(self, *resources: Asked, **more: Any) -> list[int]:
        return [answer.error_code for answer in self.ask(*resources, **more)]

    def of(self, group_id: str) -> dict[str, str]:
        return dict(self.serving.broker.view().overrides_of(group(group_id)))

    def assert_refused(self, code: ErrorCode, says: str, asked: Asked) -> None:
        before = self.serving.broker.view()
        for version in VERSIONS:
            [answer] = self.ask(asked, version=version)
            assert answer.error_code == code, answer.error_message
            assert says in str(answer.error_message)
            [refusal] = self.serving.context.refusals or []
            assert refusal.error.code is code
        assert self.serving.broker.view() is before

    def test_versions(self) -> None:
        """
        The versions of Kafka 4.3 are served.
        """
        assert incremental_alter_configs.versions == VERSIONS

    def test_set_and_delete(self) -> None:
        """
        Configs are set and deleted one by one, be the group there or not; what is not named stays.
        """
        for version in VERSIONS:
            self.serving = Serving()
            [answer] = self.ask(_set("g", session_timeout="50000", heartbeat_interval="6000"), version=version)
            assert (answer.error_code, answer.error_message) == (0, None)
            assert self.of("g") == {SESSION: "50000", HEARTBEAT: "6000"}, version
            change = _asked("g", (SESSION, SET, "60000"), (HEARTBEAT, DELETE, None))
            assert self.codes(change, version=version) == [0]
            assert self.of("g") == {SESSION: "60000"}, version
            assert self.codes(_asked("g", (SESSION, DELETE, None), ("nothing", DELETE, "")), version=version) == [0]
            assert self.serving.broker.view().overrides == {}, version

    def test_validate_only(self) -> None:
        """
        What would be refused is told, and nothing is changed.
        """
        self.codes(_set("g", session_timeout="50000"))
        before = self.serving.broker.view()
        asked = (
            _set("g", session_timeout="60000"),
            _set("h", session_timeout="1"),
            _asked("i", (SESSION, DELETE, None)),
        )
        assert self.codes(*asked, validate_only=True) == [0, ErrorCode.INVALID_CONFIG, 0]
        assert self.serving.broker.view() is before

    def test_each_for_itself(self) -> None:
        """
        Where one config is refused no other one of its group is changed, and other groups are.
        """
        wrong = _set("g", session_timeout="50000", heartbeat_interval="1")
        assert self.codes(wrong, _set("h", session_timeout="50000")) == [ErrorCode.INVALID_CONFIG, 0]
        assert (self.of("g"), self.of("h")) == ({}, {SESSION: "50000"})

    def test_whole_config(self) -> None:
        """
        What was set before must go with what is set now.
        """
        self.serving = Serving(group_consumer_max_heartbeat_interval_ms=59_000)
        assert self.codes(_set("g", session_timeout="60000")) == [0]
        assert self.codes(_set("g", heartbeat_interval="59000")) == [0]
        self.assert_refused(
            ErrorCode.INVALID_CONFIG,
            f"{SESSION} (59000) must be above {HEARTBEAT} (59000)",
            _set("g", session_timeout="59000"),
        )
        self.assert_refused(ErrorCode.INVALID_CONFIG, "(45000) must be above", _asked("g", (SESSION, DELETE, None)))

    def test_configs(self) -> None:
        """
        Unknown configs, wrong values, values out of bounds and configs of groups that are not served are refused.
        """
        for key, value, says in (
            ("session.timeout.ms", "50000", "Unknown group config name: session.timeout.ms; did you mean"),
            (SESSION, "long", "must be an integer"),
            (SESSION, "44999", "at least 45000, which is group.consumer.min.session.timeout.ms"),
            ("share.session.timeout.ms", "50000", "share groups, and these are not served here"),
            ("streams.num.standby.replicas", "1", "streams groups, and these are not served here"),
        ):
            self.assert_refused(ErrorCode.INVALID_CONFIG, says, _asked("g", (key, SET, value)))

    def test_lists(self) -> None:
        """
        Nothing can be appended to a config that is no list, nor taken from it.
        """
        for operation in (APPEND, SUBTRACT):
            self.assert_refused(ErrorCode.INVALID_CONFIG, "no list", _asked("g", (SESSION, operation, "50000")))

    def test_what_means_nothing(self) -> None:
        """
        A group without an id, an unknown operation, a config named twice or without a value are refused.
        """
        for asked, says in (
            (_set("", session_timeout="50000"), "a group has an id"),
            (_asked("g", (SESSION, 4, "50000")), "4 is no operation"),
            (_asked("g", (SESSION, SET, "50000"), (SESSION, SET, "60000")), "2 times"),
            (_asked("g", (SESSION, SET, None)), "has no value"),
        ):
            self.assert_refused(ErrorCode.INVALID_REQUEST, says, asked)

    def test_named_twice(self) -> None:
        """
        Of a resource that a request names twice nothing is changed.
        """
        twice = [_set("g", session_timeout=value) for value in ("50000", "60000")]
        other = _set("h", session_timeout="50000")
        [first, done, second] = self.ask(twice[0], other, twice[1])
        assert [first.error_code, done.error_code, second.error_code] == [
            ErrorCode.INVALID_REQUEST,
            0,
            ErrorCode.INVALID_REQUEST,
        ]
        assert first.error_message == "the request names it 2 times; name it once"
        assert self.serving.broker.view().overrides == {group("h"): {SESSION: "50000"}}

    def test_other_kinds(self) -> None:
        """
        Topics, brokers, loggers, client metrics and what Kafka does not know cannot be altered.
        """
        for kind in (0, 1, 2, 3, 4, 8, 16):
            asked = _asked("1", ("retention.ms", SET, "1"), kind=kind)
            self.assert_refused(ErrorCode.INVALID_REQUEST, f"resources of type {kind} cannot be altered", asked)

    def test_denied(self) -> None:
        """
        Of groups that the client may not configure nothing is changed, nor is it told what is wrong with them.
        """
        authorizer = Denying(lambda operation, kind, name: name != "g")
        self.serving = Serving(authorizer)
        secret = _set("secret", session_timeout="1")
        for validate_only in (True, False):
            asked = (secret, _set("g", session_timeout="50000"))
            codes = self.codes(*asked, validate_only=validate_only)
            assert codes == [ErrorCode.GROUP_AUTHORIZATION_FAILED, 0]
        assert self.serving.broker.view().overrides == {group("g"): {SESSION: "50000"}}
        need = (Operation.ALTER_CONFIGS, Resource.GROUP)
        assert {asked[:2] for asked in authorizer.asked} == {need}

    def test_waits(self) -> None:
        """
        The answer comes when all changes last, or are known not to.
        """
        changes = list[Deferred[None]]()

        def change(*_: object) -> Deferred[None]:
            changes.append(Deferred())
            return changes[-1]

        self.patch(self.serving.broker, "change_config", change)
        answer = self.begin(_set("g", session_timeout="50000"), _set("h", session_timeout="50000"))
        assert len(changes) == 2
        changes[1].callback(None)
        self.assertNoResult(answer)
        changes[0].errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"))
        answers = self.successResultOf(answer).responses
        assert [(told.error_code, told.error_message) for told in answers] == [
            (ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"),
            (0, None),
        ]

    def test_nothing(self) -> None:
        """
        A request may ask for nothing.
        """
        assert self.ask() == []
        assert self.codes(_asked("g")) == [0]
