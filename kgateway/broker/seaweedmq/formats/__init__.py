"""
How records become SeaweedMQ messages (`seaweedmq.format`).
"""
