"""Base of all operator families: the interface, rules that several share, and shape arithmetic."""
