"""
The end of a partition that is only in the memory of its broker, as far as other programs have published it.
"""
