"""What a compilation tells: events, the stages for whoever saves them, what came of options, where nodes come from."""
