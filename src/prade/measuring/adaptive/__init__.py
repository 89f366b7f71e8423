"""Adaptive measuring, which the baselines need: questions chosen one by one, from a budget reserved in advance."""
