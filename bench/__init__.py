"""
Side-by-side benchmarks, one command each. docs/benchmarks.md has the results.
"""
