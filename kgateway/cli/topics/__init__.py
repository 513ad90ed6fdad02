"""
`kgateway topics`: topics of any Kafka server.
"""
