"""From records to one tidy table, statistics, charts and pages."""
