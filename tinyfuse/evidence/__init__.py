"""Evidence for people who answer for a product: traceability, bounds, tools, results, deviations."""
