"""Base models: fetched, warmed up on executed tasks, accepted by what they propose and solve."""
