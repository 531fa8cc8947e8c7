"""Recordings: they take the steps of a run, and write them into the columns of a trace.

This is the machinery behind `optlab.record`; it knows traces by what they hold.
"""
