-- The store of assay, schema 5. This very file is executed to make a new store.
-- A trial is one transaction; nothing here is ever updated except the state of a run,
-- and its design when `--more` moves its end. `assay delete` takes whole runs out.
CREATE TABLE run (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    name            TEXT NOT NULL,
    source          TEXT NOT NULL,             -- JSON: "measured" or {"imported": FORMAT}
    state           TEXT NOT NULL,             -- JSON: "running" "finished" "interrupted" "failed"
    assay_version   TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    command_line    TEXT NOT NULL,             -- JSON list
    seed            INTEGER NOT NULL,          -- u64 bits
    engine          TEXT NOT NULL,
    job_text        TEXT,
    experiment      TEXT NOT NULL,             -- JSON, the resolved experiment
    design          TEXT NOT NULL,             -- JSON: factors, arms, stop rule
    aa              INTEGER NOT NULL,
    notes           TEXT NOT NULL,             -- JSON list
    owner           TEXT NOT NULL DEFAULT '',  -- random digits of the session that executes it
    seal            TEXT NOT NULL DEFAULT ''   -- shows that this user on this machine began it (docs/SAFETY.md)
);
CREATE TABLE cell (
    run INTEGER NOT NULL REFERENCES run(id), cell INTEGER NOT NULL,
    levels TEXT NOT NULL,                      -- JSON list of level indices
    PRIMARY KEY (run, cell)
) WITHOUT ROWID;
CREATE TABLE facts (
    run INTEGER NOT NULL REFERENCES run(id), facts INTEGER NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (run, facts)
) WITHOUT ROWID;
CREATE TABLE metric (
    run INTEGER NOT NULL REFERENCES run(id), metric INTEGER NOT NULL,
    job TEXT NOT NULL, name TEXT NOT NULL,
    unit TEXT NOT NULL, better TEXT NOT NULL,  -- JSON
    PRIMARY KEY (run, metric)
) WITHOUT ROWID;
CREATE TABLE trial (
    run INTEGER NOT NULL REFERENCES run(id), trial INTEGER NOT NULL,
    cell INTEGER NOT NULL, round INTEGER NOT NULL, position INTEGER NOT NULL, attempt INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL, elapsed_s REAL NOT NULL, facts INTEGER,
    status TEXT NOT NULL,                      -- JSON
    excluded TEXT, notes TEXT NOT NULL,        -- notes: JSON list
    PRIMARY KEY (run, trial)
) WITHOUT ROWID;
CREATE UNIQUE INDEX trial_once ON trial (run, round, position, cell, attempt);
CREATE TABLE value (
    run INTEGER NOT NULL, trial INTEGER NOT NULL, metric INTEGER NOT NULL, value REAL,
    PRIMARY KEY (run, trial, metric)
) WITHOUT ROWID;
CREATE TABLE histogram (
    run INTEGER NOT NULL, trial INTEGER NOT NULL, number INTEGER NOT NULL,
    job TEXT NOT NULL, direction TEXT NOT NULL, kind TEXT NOT NULL,  -- JSON
    hdr BLOB NOT NULL,                         -- HDR histogram of nanoseconds, V2
    PRIMARY KEY (run, trial, number)
) WITHOUT ROWID;
CREATE TABLE series (
    run INTEGER NOT NULL, trial INTEGER NOT NULL, number INTEGER NOT NULL,
    job TEXT NOT NULL, name TEXT NOT NULL, interval_s REAL NOT NULL,
    numbers BLOB NOT NULL,                     -- little-endian f64
    PRIMARY KEY (run, trial, number)
) WITHOUT ROWID;
-- Files that came with trials: what hooks left, and what they printed.
CREATE TABLE file (
    run INTEGER NOT NULL, trial INTEGER NOT NULL, number INTEGER NOT NULL,
    name TEXT NOT NULL,                        -- without a directory
    bytes BLOB NOT NULL,
    PRIMARY KEY (run, trial, number)
) WITHOUT ROWID;
-- Trials that led into rounds; none of them is judged.
CREATE TABLE lead_in (
    run INTEGER NOT NULL REFERENCES run(id), number INTEGER NOT NULL,
    cell INTEGER NOT NULL, round INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL, elapsed_s REAL NOT NULL,
    failed TEXT,                               -- why
    wrong_data INTEGER NOT NULL,
    numbers TEXT NOT NULL,                     -- JSON: [metric, value] each
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
-- The devices a run may overwrite, and which ones those were when it was begun.
CREATE TABLE claim (
    run INTEGER NOT NULL, number INTEGER NOT NULL,
    device TEXT NOT NULL,                      -- JSON: path and identity
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
-- What a run has made, to be named after a kill -9. Nothing is removed because a row says so: see docs/SAFETY.md.
CREATE TABLE leftover (
    run INTEGER NOT NULL, path TEXT NOT NULL,
    PRIMARY KEY (run, path)
) WITHOUT ROWID;
