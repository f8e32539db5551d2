"""Learned scores of sentences: linear weights over character n-grams, grammar and place."""
