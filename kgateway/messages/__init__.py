"""
The tables of Kafka's messages: one module per API, and the formats inside other bytes.

Every version of every release of Kafka is here, also of the APIs in `unserved`: a filter, a plugin or a proxy
can then read whatever a client sends, and serving an API needs a handler and nothing else.
"""
