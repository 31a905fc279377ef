"""Computes in bf16 without saying so."""


class ModelNew(Honest):
    def forward(self, x, residual):
        return self.work(x.bfloat16().float(), residual.bfloat16().float())
