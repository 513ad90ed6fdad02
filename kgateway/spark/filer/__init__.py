"""
Topics of SeaweedMQ, read from the files that it keeps in a filer, past all gateways and brokers.
"""
