"""
The segments of one partition, their side files, and the syncs of both.
"""
