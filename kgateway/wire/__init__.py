"""
Bytes to values and back: the engine behind the message tables. No reactor here.
"""
