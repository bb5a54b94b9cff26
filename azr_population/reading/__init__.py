"""Runs read back: `RunData` and its tables. Only what measures and shows runs reads here."""
