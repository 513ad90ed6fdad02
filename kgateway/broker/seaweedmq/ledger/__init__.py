"""
The mapping of Kafka offsets to SeaweedMQ's.
"""
