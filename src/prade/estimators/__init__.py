"""From noisy answers and a prior to an estimate: one protocol, one loop, three estimators."""
