WITH taken AS (
    UPDATE pool SET reserved = reserved + 1
    WHERE name = 'hot' AND reserved + committed < "limit"
    RETURNING "limit" - reserved - committed AS available)
INSERT INTO reservations (id, owner, amount, expires_at)
SELECT $1::text::uuid, $2::text, 1, now() + $3::float8 * interval '1 millisecond' FROM taken
RETURNING (SELECT available FROM taken)
