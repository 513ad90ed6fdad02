"""
ACLs where there are none.
"""

from typing import Any

import pytest

from handlers.create_acls import create_acls
from handlers.delete_acls import delete_acls
from handlers.describe_acls import describe_acls
from kgateway.api import Handler, Operation, Resource
from kgateway.server.answers import refused
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.server.test_answers import Sample, plain
from tests.serving import Denying, Serving

EVERY = pytest.mark.parametrize("handler", [describe_acls, create_acls, delete_acls], ids=lambda handler: handler.name)
REASON = "No Authorizer is configured"


def outcome(handler: Handler, version: int, serving: Serving) -> tuple[KafkaError, dict[str, Any]]:
    """
    What the handler raises, and what the client gets for it.
    """
    request = Sample().one_of_each(handler.request, version)
    with pytest.raises(KafkaError) as caught:
        serving.ask(handler, request, version)
    answer = refused(request, handler.response, version, caught.value)
    assert answer is not None
    return caught.value, plain(answer, version)


@EVERY
def test_no_acls(handler: Handler) -> None:
    """
    Whoever describes, creates or deletes ACLs is told, in every version, that there is nothing that would ask them.
    """
    assert handler.advertised == range(1, 4)
    for version in handler.versions:
        error, answer = outcome(handler, version, Serving())
        assert error.code == ErrorCode.SECURITY_DISABLED
        assert (error.message or "").startswith(REASON)
        [told] = next((value for value in answer.values() if isinstance(value, list) and value), [answer])
        assert (told["error_code"], told["error_message"]) == (error.code, error.message)


@EVERY
def test_permission(handler: Handler) -> None:
    """
    To describe ACLs takes DESCRIBE on the cluster, to change them ALTER; who has not got it learns no more than that.
    """
    operation = Operation.DESCRIBE if handler is describe_acls else Operation.ALTER
    authorizer = Denying(lambda asked, resource, name: asked is operation)
    error, _ = outcome(handler, 3, Serving(authorizer))
    assert error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert authorizer.asked == [(operation, Resource.CLUSTER, "kafka-cluster")]


def test_creation_counts() -> None:
    """
    The reason why no ACL is created says how many were not.
    """
    error, _ = outcome(create_acls, 3, Serving())
    assert "none of 1 " in (error.message or "")
