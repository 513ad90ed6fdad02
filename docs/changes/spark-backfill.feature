`kgateway spark backfill` brings files into a topic, keyed and in order, without doubles however often it is killed.
