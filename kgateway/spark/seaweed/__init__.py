"""
SeaweedMQ topics and archives, read from a filer.
"""
