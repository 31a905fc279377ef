"""The texts around a search's model calls: each prompt once, by its hash, and answers as they arrived, until they are used.

An answer is kept before anything reads it. When its call is finished, the reply that was made of it takes its place (the
schema's trigger removes it); of a call that failed it stays, for a reader.
"""

from __future__ import annotations

from ridgeline.checkpoints.archive import Archive

_KEEP = """INSERT INTO answers (call_id, number, body)
SELECT :call_id, COALESCE(MAX(number), 0) + 1, :body FROM answers WHERE call_id = :call_id"""


class KeptTexts:
    """Prompts and answers of one search, in its archive's file."""

    def __init__(self, archive: Archive) -> None:
        self._database = archive.database

    def keep_prompt(self, sha256: str, text: str) -> None:
        """Store a prompt under its hash; the same prompt is stored once."""
        with self._database.write() as rows:
            rows.execute("INSERT OR IGNORE INTO prompts (sha256, text) VALUES (?, ?)", [sha256, text])

    def prompt(self, sha256: str) -> str | None:
        """Return the prompt of this hash, as `model_calls.prompt_sha256` has it; None when it was not stored."""
        row = self._database.first("SELECT text FROM prompts WHERE sha256 = ?", [sha256])
        return None if row is None else str(row["text"])

    def keep_answer(self, call_id: str, body: bytes) -> None:
        """Store the body of a call's answer durably."""
        with self._database.write() as rows:
            rows.execute(_KEEP, {"call_id": call_id, "body": body})

    def answers(self, call_id: str) -> list[bytes]:
        """Return the bodies of a call's answers that no reply was made of, oldest first."""
        found = self._database.query("SELECT body FROM answers WHERE call_id = ? ORDER BY number", [call_id])
        return [bytes(row["body"]) for row in found]

    def unread_answer(self, call_id: str) -> bytes | None:
        """Return the answer of a call that a killed process left in flight: it arrived, and nothing came of it yet."""
        row = self._database.first(
            "SELECT body FROM answers NATURAL JOIN model_calls WHERE call_id = ? AND state = 'in_flight' "
            "ORDER BY number DESC",
            [call_id],
        )
        return None if row is None else bytes(row["body"])
