"""
The sources of a topic's records: servers or data folders.
"""
