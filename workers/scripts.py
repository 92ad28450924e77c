"""The Lua scripts of the store. Each is atomic in Redis; its docstring is its contract.

KEYS[1] is always the decision's hash, KEYS[2] the sorted set of leases, in which the member is the
decision's id and the score the time its lease runs out (seconds since 1970).
"""

from __future__ import annotations

SAVE = """
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return 1
"""
"""Accept a decision. ARGV: seconds to keep it, when its lease runs out, its id, then field names and
values in pairs. The leases are kept as long as the decision accepted last."""

CLAIM = """
local status, holder = unpack(redis.call('HMGET', KEYS[1], 'status', 'holder'))
if status ~= 'open' then return false end
local until_ = redis.call('ZSCORE', KEYS[2], ARGV[1])
if holder and holder ~= ARGV[4] and until_ and tonumber(until_) > tonumber(ARGV[2]) then return false end
redis.call('HSET', KEYS[1], 'holder', ARGV[4])
if redis.call('HGET', KEYS[1], 'wave') == '0' then redis.call('HSETNX', KEYS[1], 'started', ARGV[2]) end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return redis.call('HMGET', KEYS[1], unpack(ARGV, 5))
"""
"""Take an open decision that nobody is running, and read fields of it.

ARGV: its id, the time now, when the new lease runs out, a token of the caller's, then the names of the
fields. Returns their values (also when the same caller took it already and the reply was lost), or nil
when it is over, gone, or run by another whose lease is live.
"""

ADVANCE = """
local status, wave, mover = unpack(redis.call('HMGET', KEYS[1], 'status', 'wave', 'mover'))
if status == 'open' and wave == ARGV[2] and mover == ARGV[4] then return 1 end
if status ~= 'open' or wave ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'wave:' .. ARGV[1], 'holder')
redis.call('HSET', KEYS[1], 'wave', ARGV[2], 'wave:' .. ARGV[2], ARGV[3], 'mover', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[6])
for place = 7, #ARGV, 2 do
  redis.call('HSET', KEYS[1], 'result:' .. ARGV[place], ARGV[place + 1])
end
return 1
"""
"""Move an open decision from wave ARGV[1] to wave ARGV[2], whose reads are ARGV[3].

ARGV[4] is a token of the caller's, ARGV[5] when the lease of the waiting wave runs out, ARGV[6] the
decision's id, ARGV[7..] the read ids and results known so far, in pairs. Returns 1 when it moved (also
when the same caller moved it already and the reply was lost), 0 when another did, or it is over or gone.
"""

FINISH = """
local found = redis.call('HMGET', KEYS[1], 'status', 'channel')
redis.call('ZREM', KEYS[2], ARGV[5])
if found[1] ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'status', ARGV[1], 'body', ARGV[2])
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.find(name, '^wave:') or string.find(name, '^result:') then redis.call('HDEL', KEYS[1], name) end
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', found[2], ARGV[4])
return 1
"""
"""End an open decision: once, whoever tries.

ARGV: its terminal status, its body, the seconds to keep it, the message for the API process that waits
on the decision's channel, its id. Its waves, results and lease go. Returns 1 when this call ended it, 0
otherwise.
"""

PUT_RESULTS = """
if redis.call('HGET', KEYS[1], 'status') ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
"""
"""Keep results of an open decision: ARGV are field names and results in pairs.

A decision that is over or gone is left alone: a late result must not bring back a key without expiry.
Lua's stack bounds the pairs of one call (see store.PUT_CHUNK).
"""

TAKE_OVER = """
local until_ = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not until_ or tonumber(until_) > tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
redis.call('HDEL', KEYS[1], 'holder')
return 1
"""
"""Take over a decision whose lease ran out, and free it of whoever held it.

ARGV: its id, the time now, when the new lease runs out. Returns 1 for the one caller that took it over.
"""
