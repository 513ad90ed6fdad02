"""
Writes files into a topic: each row once, the rows of a key in order, however often the job is restarted.
"""
