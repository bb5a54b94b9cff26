"""Members tried by hand in the terminal."""
