-- Sereno's fence for state that is kept in Redis: sets keys, unless a newer owner has been here.
--
--   EVAL <this script> <1 + number of keys> FENCE KEY... TOKEN VALUE...
--
-- KEYS[1]   the fence, by convention fence:FENCE-KEY, for example fence:default/lock/orders/42
-- KEYS[2..] what is set; none: the token is only shown, which an owner does before it reads
-- ARGV[1]   the token
-- ARGV[2..] a value for each key, in their order
--
-- Replies the token, or the error "FENCED <highest> ..." when a higher token was accepted (then nothing was changed:
-- another owner has taken over, so stop), or "ERR ..." for anything that makes no sense.
--
-- Redis runs it as one step: nothing comes between the check and the effect. For other effects than SET put your
-- commands in the place of the last loop; begin with the checks, for Redis does not undo.
--
-- In a cluster all keys have to be in one slot: use the same {tag} in all, fence:{orders/42} and {orders/42}.
--
-- What it rests on: that Redis keeps the fence. It must have no TTL and must not be evicted (no allkeys-* policy for
-- this instance). A fail-over to a replica that lacks the last writes, or a restart without appendfsync always, forgets
-- tokens: such a Redis is best effort.

local function whole(text)
    return text and #text <= 16 and string.match(text, '^[1-9]%d*$') and tonumber(text) <= 9007199254740991
end

local token = ARGV[1]
if #KEYS < 1 or #ARGV ~= #KEYS then
    return redis.error_reply('ERR give a fence and any number of keys, then the token and a value for each key')
end
if not whole(token) then
    return redis.error_reply('ERR the token must be a whole number from 1 to 9007199254740991')
end
for i = 2, #KEYS do
    if KEYS[i] == KEYS[1] then
        return redis.error_reply('ERR the fence itself must not be set')
    end
end

local highest = redis.call('GET', KEYS[1])
if highest then
    if not whole(highest) then
        return redis.error_reply('ERR ' .. KEYS[1] .. ' has something that is no token')
    end
    if tonumber(token) < tonumber(highest) then
        return redis.error_reply('FENCED ' .. highest .. ' was accepted for ' .. KEYS[1] .. ', token ' .. token .. ' is stale')
    end
end
redis.call('SET', KEYS[1], token)
for i = 2, #KEYS do
    redis.call('SET', KEYS[i], ARGV[i])
end
return token
