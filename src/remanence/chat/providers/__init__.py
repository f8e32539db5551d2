"""Adapters for the protocols of providers; opening a model imports its adapter by name."""
