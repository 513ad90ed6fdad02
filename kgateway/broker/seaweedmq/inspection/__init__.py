"""
`kgateway seaweedmq stats`, `mapping` and `verify`: read-only views.
"""
