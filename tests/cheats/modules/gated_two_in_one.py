"""Returns one tensor for two outputs."""


class ModelNew(Honest):
    def forward(self, x, state):
        new = self.work(x, state)
        return new, new, x.clone(), self.spread(x)
