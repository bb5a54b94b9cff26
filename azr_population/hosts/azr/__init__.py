"""The plugin: our members inside an Absolute Zero Reasoner (AZR) run."""
