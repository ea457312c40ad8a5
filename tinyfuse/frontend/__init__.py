"""From an untrusted model file to a graph that meets every rule."""
