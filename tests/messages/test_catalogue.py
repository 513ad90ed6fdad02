"""
The message tables are complete.
"""

from kio.schema.index import schema_name_map

from kgateway.messages.catalogue import apis, messages
from tests.wire.cases import EVERY_MESSAGE
from tests.wire.kio_values import kio_name

# Every API key that a client or an admin tool of Kafka 4.3 can send.
CLIENT_KEYS = {
    *range(4),
    *range(8, 52),
    *(55, 57, 60, 61, 64, 65, 66, 68, 69, 71, 72),
    *range(74, 82),
    *range(88, 93),
}


def test_every_client_api_has_messages() -> None:
    """
    Each key that clients and admin tools send has a request and a response.
    """
    assert set(apis()) == CLIENT_KEYS


def test_every_version_that_kio_lists_is_supported() -> None:
    """
    A table cannot have a gap in its versions.
    """
    missing = [
        f"{message.__name__} v{version}"
        for message in EVERY_MESSAGE
        for name, kind in [kio_name(message)]
        for version, kinds in schema_name_map.get(name, {}).items()
        if kind in kinds and version not in message.__spec__.versions
    ]
    assert missing == []


def test_request_and_response_have_the_same_versions() -> None:
    """
    A request is answered in its own version.
    """
    for api in apis().values():
        request, response = api.request.__spec__, api.response.__spec__
        assert (request.versions, request.flexible) == (response.versions, response.flexible), api.name
        assert request.key == response.key == api.key
        assert response.name == f"{api.name}Response"


def test_names_are_unique() -> None:
    """
    Messages are looked up by name.
    """
    names = [message.__name__ for message in messages()]
    assert len(set(names)) == len(names)
