"""
Publishing to SeaweedMQ's brokers.
"""
