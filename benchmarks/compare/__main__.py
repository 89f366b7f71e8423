"""`PYTHONPATH=benchmarks python -m compare`, which is what `make compare` runs."""

from compare.comparison import main

if __name__ == "__main__":
    main()
