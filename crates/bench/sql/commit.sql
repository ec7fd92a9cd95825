WITH used AS (
    UPDATE reservations SET state = 'committed', commit_key = $2::text::uuid
    WHERE id = $1::text::uuid AND state = 'reserved' AND expires_at > now()
    RETURNING amount)
UPDATE pool SET reserved = reserved - used.amount, committed = committed + used.amount
FROM used WHERE pool.name = 'hot'
RETURNING "limit" - reserved - committed AS available
