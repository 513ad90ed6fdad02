`kgateway spark compact` makes tables of the latest value of each key, and compacts archives by key and by time, which `kgateway spark verify` still proves.
