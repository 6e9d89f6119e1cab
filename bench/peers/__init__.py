"""Programs of other projects doing the same job as ours, for comparison in the same run."""
