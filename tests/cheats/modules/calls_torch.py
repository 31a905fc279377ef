"""Leaves the work to PyTorch's own kernels."""


class ModelNew(Honest):
    def forward(self, x, residual):
        return self.ln(nn.functional.gelu(x + self.bias) + residual)
