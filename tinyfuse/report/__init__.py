"""What a plan costs, as data for scripts (facts.py) and as text for people (text.py)."""
