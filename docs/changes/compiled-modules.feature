A wheel that is built with `KGATEWAY_COMPILE=1` has compiled modules; `KGATEWAY_PURE=1` chooses the Python modules when kgateway starts, and `kgateway --version` says which are used.
