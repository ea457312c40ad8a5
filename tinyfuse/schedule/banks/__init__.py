"""Memory banks: places arrays, and copies weights into faster RAM ahead of their use."""
