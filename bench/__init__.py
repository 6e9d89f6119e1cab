"""Benchmarks: ratios against a named baseline measured in the same run. ``make bench`` runs them all."""
