"""
Which operations a client may perform on a resource, as a set of bits.
"""

UNKNOWN_OPERATIONS = -(1 << 31)  # they were not asked for
