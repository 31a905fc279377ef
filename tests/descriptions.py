"""Descriptions of problems for the tests of every room: of what a test does not say there is nothing."""

from __future__ import annotations

from typing import Any

from ridgeline.tools.records.problem import Description, Signature


def description_of(signature: Signature | None = None, **fields: Any) -> Description:
    """Return a description with this signature, of no tensor without one; `fields` are further ones of the record."""
    usual = {"reference_graph": None, "compulsory_bytes": 0, "flops": 0, "reference_sha256": "", "torch_version": "2"}
    return Description(signature=signature or Signature(args=()), **(usual | fields))
