"""
gRPC over HTTP/2 on Twisted: calls whose answers come as Deferreds, and streams of messages.
"""
