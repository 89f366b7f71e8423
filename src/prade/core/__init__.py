"""What every room uses: errors, exact numbers, arrays, threads, files, words. It knows nothing of tables or privacy."""
