"""Capture: one trace of a call with fake stand-ins, watched for what it reads and writes."""
