"""
Shared parts of commands: command lines, output, terminals, clusters.
"""
