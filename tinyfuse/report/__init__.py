"""What a plan costs, as data for scripts (report_json.py) and as text for people (text.py)."""
