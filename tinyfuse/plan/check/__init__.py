"""Independent checker of plans: it shares no code with what makes them."""
