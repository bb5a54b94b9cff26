"""Who is replaced by whose children: fitness, selection, replacement, credit."""
