"""
What Acme adds to kgateway.
"""
