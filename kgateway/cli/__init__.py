"""
The `kgateway` command.
"""
