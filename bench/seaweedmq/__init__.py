"""
kgateway before a SeaweedMQ cluster, beside the gateway that SeaweedFS itself has, before the same one.
"""
