"""From the graph to instructions."""
