"""
The records a coordinator keeps in `__consumer_offsets` and `__transaction_state`.

The key of a record starts with an i16, its type: here the `key` of both its tables. The value starts with an i16, the
version its table is encoded in.
"""
