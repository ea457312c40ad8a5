"""Search for fusion groups: orders, legality, partitions, lowering."""
