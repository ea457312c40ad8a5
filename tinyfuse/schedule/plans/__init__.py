"""Complete plans: built, searched, compared and picked."""
