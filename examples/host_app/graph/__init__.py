"""The host's own graph package."""
