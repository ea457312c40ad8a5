"""Steps that make a finished plan better."""
