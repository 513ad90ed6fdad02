"""
Names and files of topics in the filer, and what gateways share.
"""
