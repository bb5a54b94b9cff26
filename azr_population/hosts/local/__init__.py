"""A run on this machine: put together, told in advance, resumed, forked."""
