-- A stopped search as schema 3 stored it: engine failures lie among the evaluations.
BEGIN TRANSACTION;
CREATE TABLE builds (
  key TEXT NOT NULL,
  candidate_id TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  status TEXT GENERATED ALWAYS AS (json_extract(record, '$.status')) VIRTUAL,
  reason_code TEXT GENERATED ALWAYS AS (json_extract(record, '$.reason_code')) VIRTUAL,
  reason TEXT GENERATED ALWAYS AS (json_extract(record, '$.reason')) VIRTUAL,
  build_s REAL GENERATED ALWAYS AS (json_extract(record, '$.build_s')) VIRTUAL,
  cached INTEGER GENERATED ALWAYS AS (json_extract(record, '$.cached')) VIRTUAL,
  log TEXT GENERATED ALWAYS AS (json_extract(record, '$.log')) VIRTUAL,
  PRIMARY KEY (key)
);
CREATE TABLE candidates (
  id TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  origin TEXT GENERATED ALWAYS AS (json_extract(record, '$.origin')) VIRTUAL,
  round INTEGER GENERATED ALWAYS AS (json_extract(record, '$.round')) VIRTUAL,
  idea_id TEXT GENERATED ALWAYS AS (json_extract(record, '$.idea_id')) VIRTUAL,
  parent_id TEXT GENERATED ALWAYS AS (json_extract(record, '$.parent_id')) VIRTUAL,
  variation INTEGER GENERATED ALWAYS AS (json_extract(record, '$.variation')) VIRTUAL,
  attempt INTEGER GENERATED ALWAYS AS (json_extract(record, '$.attempt')) VIRTUAL,
  model TEXT GENERATED ALWAYS AS (json_extract(record, '$.model')) VIRTUAL,
  interface TEXT GENERATED ALWAYS AS (json_extract(record, '$.interface')) VIRTUAL,
  language TEXT GENERATED ALWAYS AS (json_extract(record, '$.language')) VIRTUAL,
  tunables TEXT GENERATED ALWAYS AS (json_extract(record, '$.tunables')) VIRTUAL,
  source TEXT GENERATED ALWAYS AS (json_extract(record, '$.source')) VIRTUAL,
  PRIMARY KEY (id)
);
INSERT INTO "candidates" VALUES('seed-a','{"id": "seed-a", "origin": "seed", "round": 0, "idea_id": null, "parent_id": null, "variation": 0, "attempt": 0, "source": "// kernel\n", "language": "cpp", "interface": "c", "model": "", "tunables": {}}','2026-11-22T11:46:09.878Z');
INSERT INTO "candidates" VALUES('r1i0v0a0','{"id": "r1i0v0a0", "origin": "model", "round": 1, "idea_id": "r1i0", "parent_id": "seed-a", "variation": 0, "attempt": 0, "source": "// kernel\n", "language": "cpp", "interface": "c", "model": "offline", "tunables": {}}','2026-11-22T11:46:09.878Z');
INSERT INTO "candidates" VALUES('r1i0v1a0','{"id": "r1i0v1a0", "origin": "model", "round": 1, "idea_id": "r1i0", "parent_id": "seed-a", "variation": 0, "attempt": 0, "source": "// kernel\n", "language": "cpp", "interface": "c", "model": "offline", "tunables": {}}','2026-11-22T11:46:09.879Z');
INSERT INTO "candidates" VALUES('seed-at0','{"id": "seed-at0", "origin": "tune", "round": 1, "idea_id": null, "parent_id": "seed-a", "variation": 0, "attempt": 0, "source": "// kernel\n", "language": "cpp", "interface": "c", "model": "offline", "tunables": {"B": "8"}}','2026-11-22T11:46:09.879Z');
CREATE TABLE comparisons (
  key TEXT NOT NULL,
  candidate_id TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  ratio REAL GENERATED ALWAYS AS (json_extract(record, '$.ratio')) VIRTUAL,
  first_ms REAL GENERATED ALWAYS AS (json_extract(record, '$.first_ms')) VIRTUAL,
  second_ms REAL GENERATED ALWAYS AS (json_extract(record, '$.second_ms')) VIRTUAL,
  PRIMARY KEY (key)
);
CREATE TABLE evaluations (
  candidate_id TEXT NOT NULL,
  purpose TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  key TEXT GENERATED ALWAYS AS (json_extract(record, '$.key')) VIRTUAL,
  status TEXT GENERATED ALWAYS AS (json_extract(record, '$.status')) VIRTUAL,
  reason_code TEXT GENERATED ALWAYS AS (json_extract(record, '$.reason_code')) VIRTUAL,
  reason TEXT GENERATED ALWAYS AS (json_extract(record, '$.reason')) VIRTUAL,
  speedup REAL GENERATED ALWAYS AS (CASE WHEN json_extract(record, '$.status') = 'ok' THEN json_extract(record, '$.timing.speedup') END) VIRTUAL,
  speedup_vs_best REAL GENERATED ALWAYS AS (json_extract(record, '$.speedup_vs_best')) VIRTUAL,
  median_ms REAL GENERATED ALWAYS AS (json_extract(record, '$.timing.median_ms')) VIRTUAL,
  reference_ms REAL GENERATED ALWAYS AS (json_extract(record, '$.timing.reference_ms')) VIRTUAL,
  rel_error REAL GENERATED ALWAYS AS (json_extract(record, '$.verdict.rel_error')) VIRTUAL,
  precision_class TEXT GENERATED ALWAYS AS (json_extract(record, '$.verdict.precision_class')) VIRTUAL,
  sandbox_tier TEXT GENERATED ALWAYS AS (json_extract(record, '$.verdict.sandbox_tier')) VIRTUAL,
  total_s REAL GENERATED ALWAYS AS (json_extract(record, '$.total_s')) VIRTUAL,
  PRIMARY KEY (candidate_id, purpose)
);
INSERT INTO "evaluations" VALUES('seed-a','search','{"key": "key-seed-a-search", "candidate_id": "seed-a", "purpose": "search", "status": "ok", "reason_code": "none", "reason": "", "build": {"key": "build-seed-a", "status": "ok", "reason_code": "none", "reason": "", "library_path": "/tmp/k.so", "flags": [], "toolchain": "", "log": "", "build_s": 1.1, "cached": false}, "verdict": {"status": "ok", "reason_code": "none", "reason": "", "rel_error": 2.1e-07, "precision_class": "fp32", "trials": [], "labels": [], "sandbox_tier": "A", "verify_s": 0.6, "load_s": 0.0}, "timing": {"status": "ok", "reason_code": "none", "reason": "", "median_ms": 0.8066666666666666, "p10_ms": 0.7824666666666666, "p90_ms": 0.8712000000000001, "samples": 120, "reference_ms": 1.21, "speedup": 1.5, "speedup_ci95": [1.47, 1.53], "witness_ms": 0.8066666666666666, "page_faults_per_call": null, "labels": [], "benchmark_s": 1.4, "load_s": 0.0, "clocks": {}, "graph_ms": null}, "speedup_vs_best": null, "total_s": 3.2}','2026-11-22T11:46:09.880Z');
INSERT INTO "evaluations" VALUES('r1i0v0a0','search','{"key": "unjudged:r1i0v0a0:search", "candidate_id": "r1i0v0a0", "purpose": "search", "status": "refused", "reason_code": "engine_failed", "reason": "the engine failed, the kernel may be sound: the judge died", "build": null, "verdict": null, "timing": null, "speedup_vs_best": null, "total_s": 0.0}','2026-11-22T11:46:09.880Z');
INSERT INTO "evaluations" VALUES('r1i0v1a0','search','{"key": "unjudged:r1i0v1a0:search", "candidate_id": "r1i0v1a0", "purpose": "search", "status": "refused", "reason_code": "model_failed", "reason": "offline wrote no kernel", "build": null, "verdict": null, "timing": null, "speedup_vs_best": null, "total_s": 0.0}','2026-11-22T11:46:09.880Z');
INSERT INTO "evaluations" VALUES('seed-at0','tune','{"key": "unjudged:seed-at0:tune", "candidate_id": "seed-at0", "purpose": "tune", "status": "refused", "reason_code": "engine_failed", "reason": "the engine failed, the kernel may be sound: the judge died", "build": null, "verdict": null, "timing": null, "speedup_vs_best": null, "total_s": 0.0}','2026-11-22T11:46:09.880Z');
INSERT INTO "evaluations" VALUES('seed-a','certify','{"key": "k", "candidate_id": "seed-a", "purpose": "certify", "status": "refused", "reason_code": "engine_failed", "reason": "the engine failed, the kernel may be sound: the judge died", "build": null, "verdict": null, "timing": null, "speedup_vs_best": null, "total_s": 0.0}','2026-11-22T11:46:09.881Z');
CREATE TABLE failed_sends (
  call_id TEXT NOT NULL,
  sent INTEGER NOT NULL,
  error TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  usd REAL NOT NULL,
  failed_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  PRIMARY KEY (call_id, sent)
);
CREATE TABLE ideas (
  id TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  round INTEGER GENERATED ALWAYS AS (json_extract(record, '$.round')) VIRTUAL,
  title TEXT GENERATED ALWAYS AS (json_extract(record, '$.title')) VIRTUAL,
  mechanism TEXT GENERATED ALWAYS AS (json_extract(record, '$.mechanism')) VIRTUAL,
  category TEXT GENERATED ALWAYS AS (json_extract(record, '$.category')) VIRTUAL,
  predicted_gain REAL GENERATED ALWAYS AS (json_extract(record, '$.predicted_gain')) VIRTUAL,
  parent_id TEXT GENERATED ALWAYS AS (json_extract(record, '$.parent_id')) VIRTUAL,
  second_parent_id TEXT GENERATED ALWAYS AS (json_extract(record, '$.second_parent_id')) VIRTUAL,
  model TEXT GENERATED ALWAYS AS (json_extract(record, '$.model')) VIRTUAL,
  PRIMARY KEY (id)
);
INSERT INTO "ideas" VALUES('r1i0','{"id": "r1i0", "round": 1, "title": "Fuse both passes", "mechanism": "Fuse both passes, because memory traffic is what costs.", "category": "memory_access", "predicted_gain": 1.3, "parent_id": "seed-a", "second_parent_id": null, "model": "offline"}','2026-11-22T11:46:09.878Z');
CREATE TABLE ledger (
  entry_id TEXT NOT NULL PRIMARY KEY,
  what TEXT NOT NULL,
  cpu_s REAL NOT NULL,
  gpu_s REAL NOT NULL,
  wall_s REAL NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now'))
);
INSERT INTO "ledger" VALUES('seed-a:search','search',1.0,0.0,1.0,'2026-11-22T11:46:09.881Z');
CREATE TABLE model_calls (
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
);
INSERT INTO "model_calls" VALUES('r1:ideate:0','finished','offline','cd','{"round": 1}','{"text": "{}", "input_tokens": 5, "output_tokens": 9, "usd": 0.0}','',1,'2026-11-22T11:46:09.881Z','2026-11-22T11:46:09.881Z');
CREATE TABLE profiles (
  key TEXT NOT NULL,
  candidate_id TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  bound TEXT GENERATED ALWAYS AS (json_extract(record, '$.bound')) VIRTUAL,
  fraction_of_floor REAL GENERATED ALWAYS AS (json_extract(record, '$.fraction_of_floor')) VIRTUAL,
  notes TEXT GENERATED ALWAYS AS (json_extract(record, '$.notes')) VIRTUAL,
  PRIMARY KEY (key)
);
CREATE TABLE prompt_mismatches (
  call_id TEXT NOT NULL,
  stored_sha256 TEXT NOT NULL,
  replayed_sha256 TEXT NOT NULL,
  seen_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  PRIMARY KEY (call_id, replayed_sha256)
);
CREATE TABLE rounds (
  id TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  round INTEGER GENERATED ALWAYS AS (json_extract(record, '$.round')) VIRTUAL,
  PRIMARY KEY (id)
);
CREATE TABLE runs (
  search_id TEXT NOT NULL,
  description TEXT,
  baselines TEXT,
  certificate TEXT,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  problem_name TEXT GENERATED ALWAYS AS (json_extract(record, '$.problem.name')) VIRTUAL,
  device_name TEXT GENERATED ALWAYS AS (json_extract(record, '$.device.name')) VIRTUAL,
  state TEXT GENERATED ALWAYS AS (json_extract(record, '$.state')) VIRTUAL,
  graph_version GENERATED ALWAYS AS (json_extract(record, '$.graph_version')) VIRTUAL,
  started_at GENERATED ALWAYS AS (json_extract(record, '$.started_at')) VIRTUAL,
  wall_s REAL GENERATED ALWAYS AS (json_extract(record, '$.wall_s')) VIRTUAL,
  PRIMARY KEY (search_id)
);
INSERT INTO "runs" VALUES('5e4c',NULL,NULL,NULL,'{"search_id": "5e4c", "problem": {"name": "quickstart"}, "device": {"kind": "cpu", "index": 0, "name": "Intel(R) Xeon(R) Platinum 8481C", "arch": "sapphirerapids-1f", "uuid": "cpu", "cores": 2, "memory_bytes": 8589934592, "cache_bytes": 110100480, "driver": ""}, "settings": {"rounds": 2}, "rng_seed": 0, "models": ["offline"], "graph_version": 1, "state": "stopped", "wall_s": 12.5, "best_id": null}','2026-11-22T11:46:09.877Z');
CREATE TABLE timings (
  key TEXT NOT NULL,
  candidate_id TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  status TEXT GENERATED ALWAYS AS (json_extract(record, '$.status')) VIRTUAL,
  reason_code TEXT GENERATED ALWAYS AS (json_extract(record, '$.reason_code')) VIRTUAL,
  reason TEXT GENERATED ALWAYS AS (json_extract(record, '$.reason')) VIRTUAL,
  median_ms REAL GENERATED ALWAYS AS (json_extract(record, '$.median_ms')) VIRTUAL,
  reference_ms REAL GENERATED ALWAYS AS (json_extract(record, '$.reference_ms')) VIRTUAL,
  speedup REAL GENERATED ALWAYS AS (json_extract(record, '$.speedup')) VIRTUAL,
  PRIMARY KEY (key)
);
CREATE TABLE verdicts (
  key TEXT NOT NULL,
  candidate_id TEXT NOT NULL,
  record TEXT NOT NULL,
  stored_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  status TEXT GENERATED ALWAYS AS (json_extract(record, '$.status')) VIRTUAL,
  reason_code TEXT GENERATED ALWAYS AS (json_extract(record, '$.reason_code')) VIRTUAL,
  reason TEXT GENERATED ALWAYS AS (json_extract(record, '$.reason')) VIRTUAL,
  rel_error REAL GENERATED ALWAYS AS (json_extract(record, '$.rel_error')) VIRTUAL,
  precision_class TEXT GENERATED ALWAYS AS (json_extract(record, '$.precision_class')) VIRTUAL,
  verify_s REAL GENERATED ALWAYS AS (json_extract(record, '$.verify_s')) VIRTUAL,
  PRIMARY KEY (key)
);
CREATE VIEW leaderboard AS
SELECT e.candidate_id, e.purpose, e.speedup, e.median_ms, e.reference_ms, e.precision_class, c.origin, c.round,
  i.title AS idea, c.model
FROM evaluations e JOIN candidates c ON c.id = e.candidate_id LEFT JOIN ideas i ON i.id = c.idea_id
WHERE e.status = 'ok' ORDER BY e.speedup DESC;
CREATE INDEX candidates_by_idea ON candidates (idea_id);
CREATE INDEX evaluations_by_key ON evaluations (key);
CREATE INDEX model_calls_by_state ON model_calls (state);
COMMIT;
PRAGMA user_version = 3;
