"""
What a gateway can tell of itself: why it refused, how much its log says, where its time goes.
"""
