"""The command line: `main`, and a file a command."""
