"""Reports of a compilation: events, stages for those who save them, outcomes of options, the origin of nodes."""
