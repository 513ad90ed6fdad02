`kafka-reassign-partitions --throttle` and `--replica-alter-log-dirs-throttle` are taken: their configs of brokers are kept and shown, and have no effect.
