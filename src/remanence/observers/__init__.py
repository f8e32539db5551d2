"""Observers and reflectors: embedded ones and those that ask a language model."""
