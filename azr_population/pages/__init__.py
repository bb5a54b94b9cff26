"""What people look at: the terminal, a run's page, a comparison's page."""
