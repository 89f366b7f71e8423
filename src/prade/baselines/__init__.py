"""The paper's own method, with which prade is compared: the same door, ledger, priors and scores."""
