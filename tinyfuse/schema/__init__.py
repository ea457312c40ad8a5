"""JSON Schemas of what commands print with --json. `tinyfuse schema` prints them, and the documentation site publishes
them. docs/json.md says in words what every key means."""
