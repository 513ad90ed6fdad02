"""
How the subcommands of `kgateway seaweedmq` show when something was.
"""

import time

_SECOND_NS = 1_000_000_000


def utc(ts_ns: int | None) -> str:
    """
    The second, or a dash where there is none.
    """
    return "-" if ts_ns is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ts_ns // _SECOND_NS))
