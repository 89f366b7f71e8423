"""Adaptive measuring, which the baselines need: questions chosen one after another, from a budget reserved in advance."""
