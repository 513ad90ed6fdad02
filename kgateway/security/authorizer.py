"""
The authorizer of a gateway without security.
"""

from zope.interface import implementer

from kgateway.interfaces import IAuthorizer
from kgateway.security.permissions import Operation, Resource


@implementer(IAuthorizer)
class AllowAll:
    def allowed(self, principal: str, operation: Operation, resource: Resource, name: str, host: str) -> bool:
        return True
