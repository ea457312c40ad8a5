"""Memory banks: which arrays go where, and weights that are staged into faster RAM."""
