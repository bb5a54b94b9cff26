"""Who computes: an engine generates text with many members at once and updates each of them."""
