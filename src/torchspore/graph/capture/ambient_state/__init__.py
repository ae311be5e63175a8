"""State that a trace reads without a name in the program: options, class facts, process-wide settings."""
