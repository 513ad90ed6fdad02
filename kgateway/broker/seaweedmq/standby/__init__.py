"""
What a gateway does while another one leads.
"""
