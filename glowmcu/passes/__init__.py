"""Rewrites from graph to graph."""
