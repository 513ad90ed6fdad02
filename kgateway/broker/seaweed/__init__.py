"""
SeaweedFS as brokers use it: its masters, filers and volumes, and what is built on a filer alone.
"""
