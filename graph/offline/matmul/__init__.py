"""The family of one contraction with an elementwise epilogue: how it is recognised and composed for each target."""
