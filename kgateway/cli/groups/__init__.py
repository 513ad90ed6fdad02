"""
`kgateway groups`: consumer groups, and where they go on reading.
"""
