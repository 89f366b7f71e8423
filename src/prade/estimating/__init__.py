"""From noisy counts and a prior to a distribution: Algorithm 1, the paper's exact problem, the posterior mode."""
