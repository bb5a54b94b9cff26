"""One folder per table or figure of the paper; see README.md."""
