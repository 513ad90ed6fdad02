"""
The control socket, through which operators ask a running gateway: a line of JSON in each direction.
"""
