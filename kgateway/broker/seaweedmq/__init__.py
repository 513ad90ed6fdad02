"""
The broker whose topics are those of a SeaweedMQ cluster.
"""
