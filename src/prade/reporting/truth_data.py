"""The truth's part of a report's page: how good the release is, measured with the true rows. It is NOT private.

`truth_data` gives the page's entry "truth", which is null on a page without the true rows. Its shape:

    {"score": mean of the contest's score over the places, 0 (best) to 2 (a place off by 250 rows or more scores 2),
     "nist": the same on the contest's scale, 1000 (best) to 0,
     "pairs": number of pairs of columns in the score (the contest's 50, drawn at random),
     "synthetic": mean distance of the synthetic rows over the places that have true rows, 0 to 2 (no penalty),
     "prior": the same for the public table (each place's prior),
     "ratio": synthetic / prior, or null where prior is 0,
     "sentence": "The synthetic rows have 48 % of the public table's error.",
     "worst_pairs": [{"first", "second": column names, "places": mean distance over the places,
                      "whole": distance of all rows together, "public": that of the public table, all rows}, ... 10],
     "worst_places": [{"label", "view": index of the last view, "group": number of the place in that view,
                       "distance", "public": mean distances or null, "score", "why": "" | "bias" | "missing" | "extra",
                       "true_rows", "synthetic_rows"}, ... 10],
     "heat": {"columns": [names], "places", "whole", "public": packed f32 [columns, columns], symmetric; the diagonal is
              the distance of the one-way table; "places" is the mean over the places of the last level,
              "whole" and "public" compare all rows together (synthetic and public)},
     "consistency": as in metrics,
     "copies": {"share": 0 to 1 or null, "words": str},
     "metrics": {...}}

"metrics" is what `prade score --json` has under that name (`prade.scoring.metrics.all_metrics`). Anything in it, a
whole metric or one table's part of it, may instead be {"not_available": "why, and what to do"}. "public" is null where
there is no public table.

    {"summary": [{"metric": "3-marginal", "title": "Three-way tables (k-marginal, k = 3)", "synthetic": 912.3 or null,
                  "public": 874.0 or null, "best": 1000, "digits": 1, "read": "1000 is perfect, 0 nothing in common",
                  "why": "" or why it is not available}, ...],          # one line per metric: enough for a table
     "rows": {"truth", "synthetic", "public" or null, "sample": the most rows that sampled metrics take, "seed"},
     "kmarginal": [{"k": 1, "tables": 36, "of": 36, "synthetic": {"distance": 0 to 2, "score": 0 to 1000},
                    "public": the same or null}, ... k = 2, 3],
     "propensity": {"rows": of each table, "synthetic": {"pmse", "expected", "ratio", "auc"}, "public": the same},
     "linear", "logistic": {"outcome": "PINCP" or a query, "predictors": [names],
                  "truth", "synthetic", "public": {"rows": int, "coefficients": [{"term": "SEX 2", "estimate", "error",
                       "low", "high", "overlap": 0 to 1 (not for the truth)}, ...], "overlap": mean of them (not for
                       the truth)}},     # the same terms in the same order for every table
     "pca": {"rows": of each table, "axes": [{"share": of the truth's variance, "columns": ["AGEP", ... the largest]}],
             "synthetic", "public": {"distance": mean over axes, "axes": [{"share": of this table's variance on the
                  truth's axis, "shift": difference of the means, "distance": Wasserstein, both in standard deviations
                  of the truth}, ...]}},
     "correlations": {"columns": [names], "kinds": how each kind of pair is measured, in words,
             "synthetic", "public": {"mean": mean absolute difference, "largest",
                  "worst": [{"first", "second", "kind": "Pearson" | "Cramer's V", "truth", "found", "difference"}],
                  "matrix": lists of lists, the differences (found - truth), null on the diagonal and where unknown}},
     "unique": {"unique": rows that are unique in the truth, "of": true rows,
             "synthetic", "public": {"matched": int, "share": matched / unique}},
     "consistency": {"rules": [{"low": "WAGP", "high": "PINCP", "rows": true rows with both values,
             "truth", "synthetic", "public": share of the rows with both values that have low > high, or null}, ...]}}
"""
