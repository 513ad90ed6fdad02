"""
What a process of its own may and should have: descriptors, and memory that is neither given back at once nor looked
through too often.
"""

import ctypes
import gc
import resource
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them
_KEPT_BYTES = 16 << 20
_MAPPED_BYTES = 32 << 20  # the most that malloc allows
# How many objects more there must be before Python looks for cycles among the new ones, a few milliseconds' work; and
# how often it does before it looks through older ones too.
_NEW_OBJECTS, _LOOKS = 10_000, 20


def allow_many_files() -> None:
    """
    Use as many descriptors as the system permits: clients take one each.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def keep_freed_memory() -> None:
    """
    Let malloc keep what is freed, as far as that is not much. A megabyte for each batch that comes or goes would else
    be fetched from the system, page by page, and given back, which costs more than to copy the batch.
    """
    with suppress(AttributeError, OSError):  # where malloc is not that of glibc
        set_option = ctypes.CDLL(None).mallopt
        set_option(_MMAP_THRESHOLD, _MAPPED_BYTES)
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)


def seldom_look_for_cycles() -> None:
    """
    Let Python look through what is there now never again, and through what comes less often than it would: a thousand
    members that wait for each other are many objects and no cycle, and looking at them took a fifth of a rebalance.
    What holds on to large frames is looked for by their bytes (budget.py).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _LOOKS, _LOOKS)
