"""Returns the same memory every time."""


class ModelNew(Honest):
    def forward(self, x, residual):
        self.buffer = getattr(self, "buffer", torch.empty_like(x))
        return self.buffer.copy_(self.work(x, residual))
