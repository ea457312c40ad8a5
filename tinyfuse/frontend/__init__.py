"""Reads an untrusted model file into a graph that meets every rule."""
