"""What members are asked and how it is judged: one folder for each domain of tasks."""
