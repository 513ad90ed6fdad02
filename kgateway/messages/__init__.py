"""
The tables of Kafka's messages: one module per API, and the formats inside other bytes.
"""
