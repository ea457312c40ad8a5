"""JSON Schemas of what commands print with --json: declared here once, written to docs/schema, printed by
`tinyfuse schema`. docs/json.md says in words what every key means."""
