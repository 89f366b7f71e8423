"""The metrics of the synthetic data community; they need scikit-learn: `pip install 'prade[metrics]'`."""
