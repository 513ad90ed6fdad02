"""
Records: batches, the records inside them, and their compression. Nothing here imports a reactor.
"""
