"""The generator of code tasks: programs of a grammar, executed, for evals and for bases."""
