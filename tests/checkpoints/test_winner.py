from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.graph.shipping.finished_run import Finished, write_run

from ridgeline.checkpoints.archive import Archive
from ridgeline.checkpoints.stored_certificate import CertifiedBuild, CertifiedKernel, StoredCertificate
from ridgeline.checkpoints.winner import winner_of
from ridgeline.tools.errors import RunError


@pytest.mark.parametrize("passed", [True, False])
def test_a_winner_is_certified_by_its_own_certificate_alone(tmp_path: Path, passed: bool) -> None:
    with Archive.open(write_run(tmp_path / "run", Finished(certified=passed)), create=False) as archive:
        winner = winner_of(archive, "run")
    assert winner is not None and winner.certificate is not None
    assert winner.is_certified is passed
    others = replace(winner.certificate, candidate=CertifiedKernel(id="another"))
    assert not replace(winner, certificate=others).is_certified


def test_a_winner_has_the_flags_of_its_certificates_build(tmp_path: Path) -> None:
    with Archive.open(write_run(tmp_path / "run", Finished(certified_flags=("-O3", "-Oz"))), create=False) as archive:
        winner = winner_of(archive, "run")
    assert winner is not None and winner.certified_flags == ("-O3", "-Oz")
    for certificate in (None, StoredCertificate(), StoredCertificate(build=CertifiedBuild())):
        assert replace(winner, certificate=certificate).certified_flags == ()


def test_an_archive_that_lacks_what_was_searched_for_is_refused_with_the_readers_advice(tmp_path: Path) -> None:
    with Archive.open(write_run(tmp_path / "run"), create=False) as archive:
        with archive.database.write() as rows:
            rows.execute("UPDATE runs SET description = NULL")
        with pytest.raises(
            RunError, match="^run: does not hold what it searched for; it may come from an older version"
        ):
            winner_of(archive, "run")
        with pytest.raises(RunError, match="^run: does not hold what it searched for; ask$"):
            winner_of(archive, "run", advice="ask")
