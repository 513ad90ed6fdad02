"""
Says who may do what.
"""

from zope.interface import implementer

from kgateway.interfaces import IAuthorizer
from kgateway.security.permissions import Operation, Resource


@implementer(IAuthorizer)
class AllowAll:
    """
    Everybody may do everything: a gateway without security.
    """

    def allowed(self, principal: str, operation: Operation, resource: Resource, name: str, host: str) -> bool:
        return True
