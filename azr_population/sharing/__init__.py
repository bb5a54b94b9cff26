"""What leaves a run for others: members for the Hub, tasks as a data set or as a taskset."""
