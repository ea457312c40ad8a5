"""Strategies that improve a finished plan."""
