"""Statements and conversions that every SQL backend shares."""
