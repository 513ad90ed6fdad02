Compaction of topics takes a sixth of the time if the extra `compaction`, which brings numpy, is installed.
