"""The folder that measuring leaves: noisy counts, the plan they answer, what they cost. Data only."""
