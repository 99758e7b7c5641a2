-- The files that open runs use, which nobody may remove until the runs are over.
CREATE TABLE file_uses (
    world TEXT NOT NULL,
    path TEXT NOT NULL,
    run TEXT NOT NULL,
    PRIMARY KEY (world, path, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_uses_by_run ON file_uses (world, run);
