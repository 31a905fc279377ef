"""A control: each output is a part of a larger tensor of the call's own, and does not begin where that does."""


class ModelNew(Honest):
    def forward(self, x, residual):
        rows = len(x)
        buffer = torch.empty(rows + 3, x.size(1))
        buffer[3:] = self.work(x, residual)
        return buffer[3:]
