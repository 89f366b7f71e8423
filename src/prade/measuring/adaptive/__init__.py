"""The part of the door that the baselines need: questions chosen one after the other, paid for in advance."""
