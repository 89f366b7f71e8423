"""What every room needs: errors, exact numbers, arrays, threads, files, wording. Nothing here knows about privacy."""
