"""Scores of dialogues, by the headers and the ends that each holds; one that holds a phrase is over."""

import torch
from torch import nn

DIALOGUES = 64
WORDS = 512
VOCABULARY = 50257
END = VOCABULARY - 1
HEADER = (28006, 8191, 28007, 271)
PHRASE = 12


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(2))

    def forward(self, words, phrase):
        header = torch.tensor(HEADER, device=words.device)
        turns = (words.unfold(-1, len(HEADER), 1) == header).all(-1).sum(-1)
        ends = (words == END).sum(-1)
        is_over = (words.unfold(-1, PHRASE, 1) == phrase).all(-1).any(-1)
        score = self.weights[0] * torch.log1p(turns.float()) + self.weights[1] * torch.log1p(ends.float())
        return torch.where(is_over, -4.0, score + words[:, -1] / VOCABULARY)


def get_inputs():
    return [torch.randint(0, VOCABULARY, (DIALOGUES, WORDS)), torch.randint(0, VOCABULARY, (PHRASE,))]


def get_init_inputs():
    return []
