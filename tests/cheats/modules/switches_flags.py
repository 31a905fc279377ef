"""Switches a flag that the baseline would not have."""

torch.set_float32_matmul_precision("medium")
torch.set_num_threads(1)
