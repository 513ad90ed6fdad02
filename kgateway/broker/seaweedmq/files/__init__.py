"""
The log files of a SeaweedMQ partition in the filer.
"""
