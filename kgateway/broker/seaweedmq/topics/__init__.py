"""
The topics of a SeaweedMQ cluster.
"""
