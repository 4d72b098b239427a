CREATE TABLE lead_in (
    run INTEGER NOT NULL REFERENCES run(id), number INTEGER NOT NULL,
    cell INTEGER NOT NULL, round INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL, elapsed_s REAL NOT NULL,
    failed TEXT,
    wrong_data INTEGER NOT NULL,
    numbers TEXT NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
