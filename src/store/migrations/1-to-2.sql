-- Schema 2 remembers who executes a run and what it must remove.
ALTER TABLE run ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE TABLE leftover (
    run INTEGER NOT NULL, path TEXT NOT NULL,
    PRIMARY KEY (run, path)
) WITHOUT ROWID;
