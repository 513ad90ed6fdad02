"""
The names of hosts: letters, digits and hyphens in parts, as in DNS, and underscores, which some networks use.
"""

import ipaddress
import re

_NAME = re.compile(r"(?=.{1,254}$)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")


def is_host(text: str) -> bool:
    """
    Whether this is the name of a host, or an IPv4 or IPv6 address without brackets.
    """
    return _NAME.fullmatch(text) is not None or is_ipv6(text)


def is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
