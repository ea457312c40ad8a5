"""What every operator family is made of: its interface, shared rules and shape arithmetic."""
