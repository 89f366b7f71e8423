"""The ledger: a file that records what each release has cost, and refuses to spend more than a data set's cap."""

from prade.privacy.ledger.ledger import Ledger as Ledger
