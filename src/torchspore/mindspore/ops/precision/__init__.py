"""The dtypes in which operators compute: mixed precision and `precision_mode`."""
