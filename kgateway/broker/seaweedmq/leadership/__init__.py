"""
The lease of the leader, and the gateways of a cluster.
"""
