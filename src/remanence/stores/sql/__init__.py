"""Statements that every SQL backend shares.

`store.py` makes methods of a `Store` of most functions: their promises stand in `protocols.py`.
"""
