-- Runs of a world that cost something: few of them may lie among very many that were free.
CREATE INDEX runs_paid ON streams (substr(key, 1, instr(key, '/') - 1))
    WHERE kind = 'run' AND cost_micro <> 0;
