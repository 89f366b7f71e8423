"""From distributions to synthetic rows."""
