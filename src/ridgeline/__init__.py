"""Ridgeline: searches for a faster native kernel that does the work of a PyTorch module, and proves it."""

__version__ = "0.1.0"
