"""The report of a plan's costs: data for scripts (report_json.py) and text for people (text.py)."""
