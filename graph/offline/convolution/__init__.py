"""The family of one 2-d convolution with an elementwise epilogue and a max pool: recognised, composed for each target."""
