"""The kernels that a problem file names as building blocks."""

from __future__ import annotations

from pydantic import Field

from ridgeline.problems.model_calls import Section, Text


class ReferenceKernel(Section):
    """A kernel of another operation, shown to models for what can be taken from it."""

    file: Text = Field(description="A .cpp, .cu or .py in this file's folder.")
    words: str = Field(default="", description="What it is, how fast, and what can be taken from it.")
