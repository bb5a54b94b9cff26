"""Drawing completions: `Sampler` is what the command asks for, whoever computes."""
