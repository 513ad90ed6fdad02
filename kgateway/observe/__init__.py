"""
What a gateway shows of itself: why it refused requests, its log level, and where its time is spent.
"""
