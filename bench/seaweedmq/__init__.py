"""
kgateway beside SeaweedFS's own Kafka gateway, in front of the same SeaweedMQ cluster.
"""
