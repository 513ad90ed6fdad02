"""
Opening a partition as the last process, or a crash, left it.
"""
