"""
`kgateway seaweedmq`: a SeaweedMQ cluster as a gateway sees it.
"""
