"""Self-play: match, propose, verify, solve, reward, update, rate, evolve, record; and again."""
