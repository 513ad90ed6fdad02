"""
Groups whose members share out the partitions among themselves: they join, their leader assigns, they sync.
"""
