"""From noisy counts and a prior to a distribution: the paper's Algorithm 1, its exact problem, and the posterior mode."""
