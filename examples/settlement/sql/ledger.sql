CREATE TABLE IF NOT EXISTS accounts (
    account int    PRIMARY KEY,
    due     bigint NOT NULL,            -- What it gets in each settlement, in cents.
    balance bigint NOT NULL DEFAULT 0
);

-- One row for each account and slot: the primary key is what makes a second attempt find what the first one did.
CREATE TABLE IF NOT EXISTS settlements (
    slot    text   NOT NULL,            -- SERENO_SLOT: the same for all attempts.
    account int    NOT NULL REFERENCES accounts,
    amount  bigint NOT NULL,
    attempt int    NOT NULL,            -- SERENO_ATTEMPT, SERENO_TOKEN and the replica: to see who it was.
    token   bigint NOT NULL,
    replica text   NOT NULL,
    nr      bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (slot, account)
);

-- Which account an attempt has begun to work on. The note is made behind the fence: whoever has been overtaken begins
-- nothing further.
CREATE TABLE IF NOT EXISTS begun (
    slot    text   NOT NULL,
    account int    NOT NULL REFERENCES accounts,
    attempt int    NOT NULL,
    token   bigint NOT NULL,
    replica text   NOT NULL,
    nr      bigint GENERATED ALWAYS AS IDENTITY
);

-- What came too late: somebody else had taken over.
CREATE TABLE IF NOT EXISTS refusals (
    slot    text   NOT NULL,
    attempt int    NOT NULL,
    token   bigint NOT NULL,
    highest bigint NOT NULL,
    replica text   NOT NULL
);
