"""Measurements of remanence through its public API; `python -m benchmarks` prints the table."""
