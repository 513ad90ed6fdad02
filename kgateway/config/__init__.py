"""
The settings of a gateway, and their sources.
"""
