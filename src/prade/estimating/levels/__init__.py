"""From one distribution to all groups of all levels: borrowing strength, answers with their error bars."""
