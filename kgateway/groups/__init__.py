"""
Consumer groups: who reads which partitions, and how far each group has come.
"""
