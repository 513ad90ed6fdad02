"""
Acme's plugins for kgateway.
"""
