"""Operators on images and volumes: convolutions, pooling, resizing, sampling, boxes."""
