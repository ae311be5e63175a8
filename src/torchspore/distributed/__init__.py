"""Several devices: communication, data parallel training, and graphs that are split over devices."""
