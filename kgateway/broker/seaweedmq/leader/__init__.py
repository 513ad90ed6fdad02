"""
What the gateway that leads a cluster does.
"""
