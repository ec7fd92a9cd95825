-- Sereno's fence for PostgreSQL (13 or later).
--
-- Installs a table and a function into the current schema. Harmless to repeat.
--
--     BEGIN;
--     SELECT sereno_fence('default/lock/orders/42', 1796084729117903);   -- first of all
--     UPDATE orders SET state = 'paid' WHERE id = 42;
--     COMMIT;
--
-- sereno_fence(fence_key, token)
--   returns    when the token is at least as high as every token accepted for this key so far, and
--              remembers it, as part of the transaction that called it;
--   raises     SF001 when a higher token was accepted: another owner has taken over, so stop. The transaction
--              is lost, whether the program looks or not. DETAIL is JSON: fenceKey, token, highest;
--   raises     22023 for a key that is null, empty or longer than 400 bytes, and for a token that is null,
--              below 1 or above 9007199254740991 (2^53 - 1).
--
-- Until the transaction ends the key's row is locked. Another transaction with the same key waits in
-- sereno_fence, and then sees whether this one was committed. So an older owner's transaction that has passed
-- the fence is over before a newer one passes, and none passes after it.
--
-- Call it inside BEGIN ... COMMIT, and outside of savepoints (and of PL/pgSQL blocks with EXCEPTION): rolling back
-- to a savepoint undoes the fence with all else. By itself, in autocommit, it protects nothing that comes later.
--
-- Many transactions of one owner at the same time queue up at their one key. Where that is too slow: show the token
-- once, in a transaction of its own, when the ownership begins; then let each transaction call sereno_fence as its
-- last statement. The row is then locked for a moment only, and a stale transaction is still lost.
--
-- Several keys in one transaction: in the order of the keys, everywhere. Otherwise two transactions can wait
-- for each other; PostgreSQL then ends one of them with 40P01, and it has to be repeated.
--
-- Isolation levels. READ COMMITTED (the default) is enough: the lock on the row puts the transactions of a key
-- in order. Under REPEATABLE READ and SERIALIZABLE call it as the first statement; a transaction that meets
-- another one with the same key may then get 40001 (serialization failure) instead of a wait or SF001. Repeat it
-- from BEGIN with the same token: either it passes, or SF001 tells that the token is stale.
--
-- What it rests on: a commit that was acknowledged is not lost. With synchronous_commit = off, or after a
-- fail-over to a standby that had not got the last commits, the fence forgets tokens together with the effects
-- that they protected; the next token of the present owner repairs it.
--
-- A stricter installation, where programs may make mistakes: they can call the function, and cannot touch the table.
--     REVOKE ALL ON sereno_fence_tokens FROM PUBLIC;
--     ALTER FUNCTION sereno_fence(text, bigint) SECURITY DEFINER SET search_path = YOUR_SCHEMA, pg_temp;

CREATE TABLE IF NOT EXISTS sereno_fence_tokens (
    fence_key   text        PRIMARY KEY CHECK (octet_length(fence_key) BETWEEN 1 AND 400),
    token       bigint      NOT NULL CHECK (token BETWEEN 1 AND 9007199254740991),
    accepted_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);  -- Room to update rows in place.

COMMENT ON TABLE sereno_fence_tokens IS
    'The highest fencing token accepted for each fence key. Deleting a row lets older owners in again.';

CREATE OR REPLACE FUNCTION sereno_fence(fence_key text, token bigint) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $sereno$
#variable_conflict use_column
DECLARE
    shown_key   CONSTANT text   := $1;
    shown_token CONSTANT bigint := $2;
    highest     bigint;
BEGIN
    IF shown_key IS NULL OR octet_length(shown_key) NOT BETWEEN 1 AND 400 THEN
        RAISE EXCEPTION 'sereno_fence: fence_key must have 1 to 400 bytes'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF shown_token IS NULL OR shown_token NOT BETWEEN 1 AND 9007199254740991 THEN
        RAISE EXCEPTION 'sereno_fence: token must be 1 to 9007199254740991'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    -- Takes the row and its lock: waits for a transaction that has it, also for one that is only just inserting it,
    -- and then compares with what that one left. An equal token is written again on purpose: under REPEATABLE READ a
    -- waiting transaction that is behind only notices (40001) when the row has changed.
    INSERT INTO sereno_fence_tokens AS f (fence_key, token) VALUES (shown_key, shown_token)
    ON CONFLICT (fence_key) DO UPDATE
        SET token = EXCLUDED.token,
            accepted_at = CASE WHEN f.token = EXCLUDED.token THEN f.accepted_at ELSE clock_timestamp() END
        WHERE f.token <= EXCLUDED.token;
    IF FOUND THEN
        RETURN;
    END IF;

    -- Locked by the statement above, so it is the one that was compared.
    SELECT f.token INTO highest FROM sereno_fence_tokens AS f WHERE f.fence_key = shown_key;
    RAISE EXCEPTION 'fencing token % for "%" is stale: % was accepted', shown_token, shown_key, highest
        USING ERRCODE = 'SF001',
              DETAIL = json_build_object('fenceKey', shown_key, 'token', shown_token, 'highest', highest)::text,
              HINT = 'Another owner has taken over: stop, and do not repeat this with the same token.';
END
$sereno$;

COMMENT ON FUNCTION sereno_fence(text, bigint) IS
    'Accepts a fencing token that is at least the highest of its key, raises SF001 on an older one.';
