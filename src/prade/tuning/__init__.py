"""Which plan to choose: the whole run is rehearsed on public rows."""
