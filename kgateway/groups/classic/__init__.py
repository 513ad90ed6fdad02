"""
Groups of the classic protocol: members join, their leader assigns, they sync.
"""
