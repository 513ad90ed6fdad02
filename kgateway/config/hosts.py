"""
What can be the name of a host: letters, digits and hyphens in parts, as DNS has it, and underlines, which some use.
"""

import ipaddress
import re

_NAME = re.compile(r"(?=.{1,254}$)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")


def is_host(text: str) -> bool:
    """
    Whether this is a name of a host, or an address of IPv4 or IPv6 without brackets.
    """
    return _NAME.fullmatch(text) is not None or is_ipv6(text)


def is_ipv6(text: str) -> bool:
    """
    Whether this is an address of IPv6.
    """
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
