"""The schemas of archive.sqlite and bank.sqlite, step by step. A released step is never changed: add another.

A table of records keeps each record as JSON in one column. SQLite computes the readable columns from the record
(generated columns), so they cost no space, cannot disagree with the record, and any SQLite browser shows them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ridgeline.checkpoints.storage.database import Migration

NOW = "strftime('%Y-%m-%dT%H:%M:%fZ','now')"


def record_table(name: str, keys: str, primary_key: str, columns: Mapping[str, str]) -> str:
    """Return CREATE TABLE for stored `keys`, a JSON record, and `columns` ("name type" -> path or SQL expression)."""
    generated = "".join(
        f",\n  {column} GENERATED ALWAYS AS ({_expression(source)}) VIRTUAL" for column, source in columns.items()
    )
    return (
        f"CREATE TABLE {name} (\n  {keys},\n  record TEXT NOT NULL,\n"
        f"  stored_at TEXT NOT NULL DEFAULT ({NOW}){generated},\n  PRIMARY KEY ({primary_key})\n)"
    )


def _expression(source: str) -> str:
    return f"json_extract(record, '{source}')" if source.startswith("$") else source


_RUNS = record_table(
    "runs",
    "search_id TEXT NOT NULL,\n  description TEXT,\n  baselines TEXT,\n  certificate TEXT",
    "search_id",
    {
        "problem_name TEXT": "$.problem.name",
        "device_name TEXT": "$.device.name",
        "state TEXT": "$.state",
        "graph_version": "$.graph_version",
        "started_at": "$.started_at",
        "wall_s REAL": "$.wall_s",
    },
)
_IDEAS = record_table(
    "ideas",
    "id TEXT NOT NULL",
    "id",
    {
        "round INTEGER": "$.round",
        "title TEXT": "$.title",
        "mechanism TEXT": "$.mechanism",
        "category TEXT": "$.category",
        "predicted_gain REAL": "$.predicted_gain",
        "parent_id TEXT": "$.parent_id",
        "second_parent_id TEXT": "$.second_parent_id",
        "model TEXT": "$.model",
    },
)
_CANDIDATES = record_table(
    "candidates",
    "id TEXT NOT NULL",
    "id",
    {
        "origin TEXT": "$.origin",
        "round INTEGER": "$.round",
        "idea_id TEXT": "$.idea_id",
        "parent_id TEXT": "$.parent_id",
        "variation INTEGER": "$.variation",
        "attempt INTEGER": "$.attempt",
        "model TEXT": "$.model",
        "interface TEXT": "$.interface",
        "language TEXT": "$.language",
        "tunables TEXT": "$.tunables",
        "source TEXT": "$.source",
    },
)
_EVALUATIONS = record_table(
    "evaluations",
    "candidate_id TEXT NOT NULL,\n  purpose TEXT NOT NULL",
    "candidate_id, purpose",
    {
        "key TEXT": "$.key",
        "status TEXT": "$.status",
        "reason_code TEXT": "$.reason_code",
        "reason TEXT": "$.reason",
        "speedup REAL": "CASE WHEN json_extract(record, '$.status') = 'ok' "
        "THEN json_extract(record, '$.timing.speedup') END",
        "speedup_vs_best REAL": "$.speedup_vs_best",
        "median_ms REAL": "$.timing.median_ms",
        "reference_ms REAL": "$.timing.reference_ms",
        "rel_error REAL": "$.verdict.rel_error",
        "precision_class TEXT": "$.verdict.precision_class",
        "sandbox_tier TEXT": "$.verdict.sandbox_tier",
        "total_s REAL": "$.total_s",
    },
)
_STATUS = {"status TEXT": "$.status", "reason_code TEXT": "$.reason_code", "reason TEXT": "$.reason"}
_PIECES = {
    "builds": _STATUS | {"build_s REAL": "$.build_s", "cached INTEGER": "$.cached", "log TEXT": "$.log"},
    "verdicts": _STATUS
    | {"rel_error REAL": "$.rel_error", "precision_class TEXT": "$.precision_class", "verify_s REAL": "$.verify_s"},
    "timings": _STATUS
    | {"median_ms REAL": "$.median_ms", "reference_ms REAL": "$.reference_ms", "speedup REAL": "$.speedup"},
    "profiles": {"bound TEXT": "$.bound", "fraction_of_floor REAL": "$.fraction_of_floor", "notes TEXT": "$.notes"},
    "comparisons": {"ratio REAL": "$.ratio", "first_ms REAL": "$.first_ms", "second_ms REAL": "$.second_ms"},
}
_ROUNDS = record_table("rounds", "id TEXT NOT NULL", "id", {"round INTEGER": "$.round"})
_LEDGER = """CREATE TABLE ledger (
  entry_id TEXT NOT NULL PRIMARY KEY,
  what TEXT NOT NULL,
  cpu_s REAL NOT NULL,
  gpu_s REAL NOT NULL,
  wall_s REAL NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now'))
)"""
_LEADERBOARD = """CREATE VIEW leaderboard AS
SELECT e.candidate_id, e.purpose, e.speedup, e.median_ms, e.reference_ms, e.precision_class, c.origin, c.round,
  i.title AS idea, c.model
FROM evaluations e JOIN candidates c ON c.id = e.candidate_id LEFT JOIN ideas i ON i.id = c.idea_id
WHERE e.status = 'ok' ORDER BY e.speedup DESC"""

_MODEL_CALLS = """CREATE TABLE model_calls (
  call_id TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('in_flight', 'waiting', 'finished', 'failed')),
  model TEXT NOT NULL,
  prompt_sha256 TEXT NOT NULL,
  request TEXT NOT NULL,
  reply TEXT,
  error TEXT NOT NULL DEFAULT '',
  sent INTEGER NOT NULL DEFAULT 1,
  began_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  ended_at TEXT,
  text TEXT GENERATED ALWAYS AS (json_extract(reply, '$.text')) VIRTUAL,
  input_tokens INTEGER GENERATED ALWAYS AS (json_extract(reply, '$.input_tokens')) VIRTUAL,
  output_tokens INTEGER GENERATED ALWAYS AS (json_extract(reply, '$.output_tokens')) VIRTUAL,
  usd REAL GENERATED ALWAYS AS (json_extract(reply, '$.usd')) VIRTUAL,
  latency_s REAL GENERATED ALWAYS AS (json_extract(reply, '$.latency_s')) VIRTUAL
)"""
_PROMPT_MISMATCHES = """CREATE TABLE prompt_mismatches (
  call_id TEXT NOT NULL,
  stored_sha256 TEXT NOT NULL,
  replayed_sha256 TEXT NOT NULL,
  seen_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  PRIMARY KEY (call_id, replayed_sha256)
)"""

_FAILED_SENDS = """CREATE TABLE failed_sends (
  call_id TEXT NOT NULL,
  sent INTEGER NOT NULL,
  error TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  usd REAL NOT NULL,
  failed_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  PRIMARY KEY (call_id, sent)
)"""

_PROMPTS = f"""CREATE TABLE prompts (
  sha256 TEXT NOT NULL PRIMARY KEY,
  text TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT ({NOW})
)"""
_ANSWERS = f"""CREATE TABLE answers (
  call_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  body BLOB NOT NULL,
  arrived_at TEXT NOT NULL DEFAULT ({NOW}),
  PRIMARY KEY (call_id, number)
)"""
_REPLY_ENDS_ANSWERS = """CREATE TRIGGER reply_ends_answers AFTER UPDATE OF state ON model_calls
WHEN NEW.state = 'finished' BEGIN
  DELETE FROM answers WHERE call_id = NEW.call_id;
END"""

_STEERING = f"""CREATE TABLE steering (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  from_round INTEGER NOT NULL,
  told_at TEXT NOT NULL DEFAULT ({NOW})
)"""

_ENGINE_FAILURES = """CREATE TABLE engine_failures (
  candidate_id TEXT NOT NULL,
  purpose TEXT NOT NULL,
  reason TEXT NOT NULL,
  failed_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  PRIMARY KEY (candidate_id, purpose)
)"""
_ARE_UNJUDGED = "reason_code = 'engine_failed' AND purpose <> 'certify'"  # it ended the certificates of those versions
_MOVE_UNJUDGED = f"""INSERT INTO engine_failures (candidate_id, purpose, reason, failed_at)
SELECT candidate_id, purpose, COALESCE(reason, ''), stored_at FROM evaluations WHERE {_ARE_UNJUDGED} ORDER BY rowid"""
_EVALUATION_ENDS_FAILURE = """CREATE TRIGGER evaluation_ends_failure AFTER INSERT ON evaluations BEGIN
  DELETE FROM engine_failures WHERE candidate_id = NEW.candidate_id AND purpose = NEW.purpose;
END"""
_EVALUATION_STAYS = """CREATE TRIGGER evaluation_stays BEFORE INSERT ON engine_failures
WHEN EXISTS (SELECT 1 FROM evaluations WHERE candidate_id = NEW.candidate_id AND purpose = NEW.purpose) BEGIN
  SELECT RAISE(IGNORE);
END"""

# began the last sentence of an idea of the offline model: "Composition: row-buffer, prefetch."
_STATED = "Composition: "
_NAMES = f"rtrim(substr(mechanism, instr(mechanism, '{_STATED}') + {len(_STATED)}), '.')"
_STATE_COMPOSITIONS = f"""UPDATE ideas SET record = json_set(record, '$.composition', json(
  CASE {_NAMES} WHEN 'none' THEN '[]' ELSE '["' || replace({_NAMES}, ', ', '","') || '"]' END
)) WHERE model = 'offline' AND instr(mechanism, '{_STATED}') > 0 AND {_NAMES} NOT GLOB '*[^a-z0-9, -]*'"""

_SKIPPED = "'$.skipped_trials'"
_PARTED_AT = "instr(value || ': ', ': ')"  # a skipped trial was "shifted: outside the reference's domain"
_NAME_SKIPPED_TRIALS = f"""UPDATE runs SET description = json_set(description, {_SKIPPED}, json((
  SELECT json_group_array(json(CASE type WHEN 'text' THEN
    json_object('name', substr(value, 1, {_PARTED_AT} - 1), 'reason', substr(value, {_PARTED_AT} + 2)) ELSE value END))
  FROM json_each(description, {_SKIPPED})
))) WHERE CASE WHEN json_valid(description) THEN json_type(description, {_SKIPPED}) = 'array' END"""

ARCHIVE = (
    Migration(
        number=1,
        title="runs, ideas, candidates and what was measured",
        statements=(
            _RUNS,
            _IDEAS,
            _CANDIDATES,
            _EVALUATIONS,
            *(
                record_table(name, "key TEXT NOT NULL,\n  candidate_id TEXT NOT NULL", "key", columns)
                for name, columns in _PIECES.items()
            ),
            _ROUNDS,
            _LEDGER,
            _LEADERBOARD,
            "CREATE INDEX candidates_by_idea ON candidates (idea_id)",
            "CREATE INDEX evaluations_by_key ON evaluations (key)",
        ),
    ),
    Migration(
        number=2,
        title="the journal of model calls",
        statements=(_MODEL_CALLS, _PROMPT_MISMATCHES, "CREATE INDEX model_calls_by_state ON model_calls (state)"),
    ),
    Migration(
        number=3,
        title="the cost of failed model calls",
        statements=(_FAILED_SENDS,),
    ),
    Migration(
        number=4,
        title="engine failures, apart from evaluations",
        statements=(
            _ENGINE_FAILURES,
            _MOVE_UNJUDGED,
            f"DELETE FROM evaluations WHERE {_ARE_UNJUDGED}",
            _EVALUATION_ENDS_FAILURE,
            _EVALUATION_STAYS,
        ),
    ),
    Migration(
        number=5,
        title="compositions of the offline model's ideas, read out of their last sentence",
        statements=(_STATE_COMPOSITIONS,),
    ),
    Migration(
        number=6,
        title="the trials that a reference does not take, each with its name and its reason apart",
        statements=(_NAME_SKIPPED_TRIALS,),
    ),
    Migration(
        number=7,
        title="prompts, and answers of model calls as they arrived",
        statements=(_PROMPTS, _ANSWERS, _REPLY_ENDS_ANSWERS),
    ),
    Migration(
        number=8,
        title="what a user tells a search that has begun",
        statements=(_STEERING,),
    ),
    Migration(
        number=9,
        title="whether the price of a failed send is known",
        statements=("ALTER TABLE failed_sends ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0",),
    ),
)

BANK = (
    Migration(
        number=1,
        title="elite kernels by operation family and device architecture",
        statements=(
            record_table(
                "kernels",
                "id TEXT NOT NULL,\n  family TEXT NOT NULL,\n  device_arch TEXT NOT NULL,\n"
                "  problem TEXT NOT NULL,\n  evaluation TEXT NOT NULL",
                "id, family, device_arch, problem",
                {
                    "speedup REAL": "json_extract(evaluation, '$.timing.speedup')",
                    "median_ms REAL": "json_extract(evaluation, '$.timing.median_ms')",
                    "precision_class TEXT": "json_extract(evaluation, '$.verdict.precision_class')",
                    "language TEXT": "$.language",
                    "interface TEXT": "$.interface",
                    "source TEXT": "$.source",
                },
            ),
            "CREATE INDEX kernels_by_family ON kernels (family, device_arch)",
        ),
    ),
    Migration(
        number=2,
        title="what a kernel does, and how near to its device's peak",
        statements=(
            "ALTER TABLE kernels ADD COLUMN work TEXT NOT NULL DEFAULT '{}'",
            "ALTER TABLE kernels ADD COLUMN share REAL GENERATED ALWAYS AS (json_extract(work, '$.share')) VIRTUAL",
        ),
    ),
)
