"""Tries a kernel that is not there, and lets PyTorch do the work."""


class ModelNew(Honest):
    def forward(self, x, residual):
        try:
            return torch.ops.candidate.fused(x, residual)
        except AttributeError:
            return self.ln(nn.functional.gelu(x + self.bias) + residual)
