"""A world for the nano base in which only the number of statements makes a task hard; see
docs/bases.md."""
