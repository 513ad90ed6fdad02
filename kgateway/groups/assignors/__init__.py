"""
Server-side assignors (KIP-848).
"""
