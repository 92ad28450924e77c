"""The Lua scripts of the store. Each is atomic in Redis; its docstring is its contract."""

from __future__ import annotations

ADVANCE = """
local found = redis.call('HMGET', KEYS[1], 'status', 'wave')
if found[1] ~= 'open' or found[2] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'wave', ARGV[2], 'wave:' .. ARGV[2], ARGV[3])
for place = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[1], 'result:' .. ARGV[place], ARGV[place + 1])
end
return 1
"""
"""Move an open decision from wave ARGV[1] to wave ARGV[2], whose reads are ARGV[3].

KEYS[1] is the decision; ARGV[4..] are the read ids and results known so far, in pairs. Returns 1
when it moved, 0 when another did so first, or the decision is finished or gone.
"""

FINISH = """
local found = redis.call('HMGET', KEYS[1], 'status', 'channel')
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

KEYS[1] is the decision; ARGV: its terminal status, its body, the seconds to keep it, and the
message for the API process that waits on the decision's channel. Its waves and results go. Returns
1 when this call ended it, 0 otherwise.
"""

PUT_RESULTS = """
if redis.call('HGET', KEYS[1], 'status') ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
"""
"""Keep results of an open decision: KEYS[1] it, ARGV field names and results in pairs.

A decision that is over or gone is left alone: a late result must not bring back a key without expiry.
Lua's stack bounds the pairs of one call (see store.PUT_CHUNK).
"""
