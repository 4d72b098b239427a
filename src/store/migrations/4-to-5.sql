CREATE TABLE file (
    run INTEGER NOT NULL, trial INTEGER NOT NULL, number INTEGER NOT NULL,
    name TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (run, trial, number)
) WITHOUT ROWID;
