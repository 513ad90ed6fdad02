Record batches: checked, placed without a copy, read lazily and built, with gzip, snappy, lz4 and zstd.
