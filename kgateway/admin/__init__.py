"""
Requests of administrators: configs, features, log levels.
"""
