"""Reports of a compilation: events, stages for recordings, outcomes of options, the sources of nodes."""
