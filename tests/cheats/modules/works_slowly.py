"""The control of those that put work off: as much of it, in time."""


class ModelNew(Honest):
    def forward(self, x, residual):
        for _ in range(20):
            result = self.work(x, residual)
        return result
