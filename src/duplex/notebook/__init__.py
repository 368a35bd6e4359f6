"""Runs, calls and metrics for notebooks and programs: shown, as data frames, drawn.

A face over results that exist: it reads run folders and measurements, formats and
draws, and never computes a figure that the metrics or the verdict do not. pandas and
matplotlib are asked for when they are needed and not before.
"""
