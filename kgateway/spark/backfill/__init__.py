"""
Files into a topic: each row once, those of a key in their order, however often it is begun again.
"""
