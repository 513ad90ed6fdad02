Archives of topics: `kgateway spark archive` keeps them as Parquet files through whatever is killed, and `kgateway spark verify` proves it.
