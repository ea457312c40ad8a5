"""The search for fusion groups: orders, legality, partitions, lowering."""
