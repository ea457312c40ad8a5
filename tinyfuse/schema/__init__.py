"""JSON Schemas of the answers with --json. `tinyfuse schema` prints them, and the documentation site publishes them.
docs/json.md has the meaning of every key."""
