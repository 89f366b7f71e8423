"""What is measured of synthetic rows beside tables; all but k-marginals need `pip install 'prade[metrics]'`."""
