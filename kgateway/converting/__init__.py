"""
Records on their way in and out that become something else: where such work is done, and when.
"""
