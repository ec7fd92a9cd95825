-- A pool in PostgreSQL, as people build quotas on it. Both tables leave room in their pages, so that an update writes no
-- index (HOT), and PostgreSQL tidies up as it goes.
CREATE TABLE pool (
    name text PRIMARY KEY,
    "limit" bigint NOT NULL,
    reserved bigint NOT NULL DEFAULT 0,
    committed bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

CREATE TABLE reservations (
    id uuid PRIMARY KEY,            -- the key of the request: reserve again, and there is one
    owner text NOT NULL,
    amount bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    state text NOT NULL DEFAULT 'reserved',
    commit_key uuid                 -- the key of the request that committed it
) WITH (fillfactor = 60);
