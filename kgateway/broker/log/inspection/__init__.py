"""
`kgateway log check` and `kgateway log dump`: a data folder read without changing it.
"""
