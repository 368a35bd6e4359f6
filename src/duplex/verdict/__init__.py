"""Many calls as one answer: checks, verdict, samples, sweeps, comparison."""
