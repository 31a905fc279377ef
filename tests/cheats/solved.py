"""Means of Gaussian processes: equations of a covariance with noise, which are the harder the nearer it is to singular.

Where covariances were measured, with an error, each is made symmetric first, and noise is added then.
"""

import torch
from torch import nn

PROCESSES = 2
POINTS = 96
FEATURES = 192
TARGETS = 4
NOISE = 0.1
ERROR = 0.0


class Model(nn.Module):
    def forward(self, covariance, targets):
        if ERROR:
            covariance = with_noise(covariance)
        return torch.cholesky_solve(targets, torch.linalg.cholesky(covariance))


def with_noise(covariance):
    return (covariance + covariance.mT) / 2 + NOISE * torch.eye(POINTS)


def get_inputs():
    points = torch.randn(PROCESSES, POINTS, FEATURES)
    covariance = points @ points.mT / FEATURES
    measured = covariance + ERROR * torch.randn(PROCESSES, POINTS, POINTS) if ERROR else with_noise(covariance)
    return [measured, torch.randn(PROCESSES, POINTS, TARGETS)]


def get_init_inputs():
    return []
