"""
UpdateFeatures.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.handlers.update_features import update_features
from kgateway.messages.metadata import MetadataRequest
from kgateway.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import refusal
from tests.serving import Serving

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
GROUPS, METADATA = "group.version", "metadata.version"
Update = UpdateFeaturesRequest.FeatureUpdate


class UpdateFeaturesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        key = MetadataRequest.__spec__.key
        assert key is not None
        self.serving.parts.advertised = {key: (range(14), "Metadata"), 68: (range(2), "ConsumerGroupHeartbeat")}

    def request(self, *updates: tuple[str, int, int]) -> UpdateFeaturesRequest:
        wanted = [Update(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
        return UpdateFeaturesRequest(feature_updates=wanted)

    def ask(self, *updates: tuple[str, int, int], version: int = 1) -> UpdateFeaturesResponse:
        answer = self.successResultOf(self.serving.ask(update_features, self.request(*updates), version))
        assert isinstance(answer, UpdateFeaturesResponse)
        return answer

    def assert_refused(self, name: str, level: int, kind: int, says: str) -> None:
        for version in (1, 2):
            request = self.request((GROUPS, 1, UPGRADE), (name, level, kind))
            error = refusal(self.serving.ask, update_features, request, version)
            assert error.code is ErrorCode.INVALID_UPDATE_VERSION
            assert error.message == (
                "The update failed for all features since the following feature had an error: Invalid update version "
                f"{level} for feature {name}. {says}"
            )

    def test_current_levels_are_accepted(self) -> None:
        """
        The type of the change does not matter.
        """
        for version in update_features.versions:
            for kind in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
                answer = self.ask((GROUPS, 1, kind), (METADATA, 30, kind), version=version)
                told = [(result.feature, result.error_code) for result in answer.results]
                assert told == ([(GROUPS, 0), (METADATA, 0)] if version < 2 else []), version
                assert (answer.error_code, answer.error_message) == (0, None)

    def test_unknown_features_and_levels_are_refused(self) -> None:
        """
        Kafka refuses them likewise.
        """
        self.assert_refused("share.version", 1, UPGRADE, "Local controller 1 does not support this feature.")
        self.assert_refused(GROUPS, 2, UPGRADE, "Local controller 1 only supports versions 0-1")
        self.assert_refused(METADATA, 29, SAFE_DOWNGRADE, "Local controller 1 only supports versions 30-30")
        self.assert_refused(GROUPS, -1, SAFE_DOWNGRADE, "A feature version cannot be less than 0.")
        for kind in (0, 4):
            self.assert_refused(GROUPS, 1, kind, "The controller does not support the given upgrade type.")

    def test_no_level_is_lowered(self) -> None:
        """
        An upgrade must not either.
        """
        upgrade = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
        self.assert_refused(GROUPS, 0, UPGRADE, upgrade)
        for kind in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            self.assert_refused(GROUPS, 0, kind, "It is 1 in this gateway, and cannot be changed.")

    def test_downgrades_of_version_0(self) -> None:
        """
        It says only that they are allowed.
        """
        for allowed, says in ((False, "Can't downgrade"), (True, "It is 1")):
            update = Update(feature=GROUPS, max_version_level=0, allow_downgrade=allowed)
            request = UpdateFeaturesRequest(feature_updates=[update])
            assert says in str(refusal(self.serving.ask, update_features, request, 0).message)
