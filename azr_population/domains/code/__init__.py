"""The code-reasoning tasks: what they are, how they are asked for, and when they count."""
