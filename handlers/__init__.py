"""
The handlers that come with the gateway: one module for each Kafka API, named like its module in `kgateway.messages`.

A handler is a function that `kgateway.api.api` makes a plugin of. It is found because it stands here. No other module
names it, least of all another handler.
"""
