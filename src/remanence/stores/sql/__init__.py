"""Statements shared by all SQL backends.

`store.py` turns most of these functions into methods of `Store`, which `protocols.py` documents.
"""
