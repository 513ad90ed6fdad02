"""
TLS and JWT of a cluster, as its security.toml says.
"""
