"""Streams, GPU libraries and Ascend options: code that acts on one kind of device."""
