"""
Calls to SeaweedFS: addresses, retries, circuit breaker, HTTP.
"""
