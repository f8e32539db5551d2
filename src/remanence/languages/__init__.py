"""Vocabulary of the languages that the embedded observer reads."""
