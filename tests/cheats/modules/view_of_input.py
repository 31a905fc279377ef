"""Returns a view of its input."""


class ModelNew(Honest):
    def forward(self, x, residual):
        return x.view(x.shape)
