"""
How Kafka's records become messages of SeaweedMQ, and messages become records: one module for each form.
"""
