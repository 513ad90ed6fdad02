"""
Side-by-side benchmarks, one command each. Results with date and versions stand in docs/benchmarks.md.
"""
