"""The folder that measuring writes: noisy counts, the plan they answer, what they cost. Data only."""
