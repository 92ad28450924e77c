"""The Lua scripts that batches are kept with. Each is atomic in Redis; its docstring is its contract.

A batch is a hash; beside it, under its key, stand its pieces (workers/store/batches.py). Scripts may be sent
twice: the second run changes nothing.
"""

from __future__ import annotations

from workers.store.fragments import HOOK, OUTLAST, SETTLE, TELL

SAVE_BATCH = f"""{OUTLAST}
local id, now, keep = unpack(ARGV, 1, 3)
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('EXPIRE', KEYS[1], keep)
redis.call('ZADD', KEYS[2], now, id)
redis.call('ZADD', KEYS[3], now, id)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - keep)
for place = 2, 3 do outlast(KEYS[place], keep) end
return 1
"""
"""Accept a batch whose states are all in their pieces.

KEYS: its hash, the sorted set of the feeders' leases (its own ran out before it began, so that any feeder may
take it), the sorted set of its owner's batches by time. ARGV: its id, the time now, seconds to keep it, then
field names and values in pairs.
"""

TAKE_BATCH = """
local until_ = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not until_ or tonumber(until_) > tonumber(ARGV[2]) then return 0 end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 0
end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return 1
"""
"""Take over the feeding of a batch whose lease ran out. ARGV: its id, the time now, when the new lease runs
out. Returns 1 for the one feeder that took it.
"""

FEED = f"""{HOOK}{OUTLAST}{SETTLE}
local batch, open, out, decision, leases = unpack(KEYS)
local id, item, index, piece, now, line, lease, prefix, keep = unpack(ARGV, 1, 9)
local status, fed, cancel, fault, deadline, held, hooks =
  unpack(redis.call('HMGET', batch, 'status', 'fed', 'cancel', 'fault', 'deadline', 'piece', 'hooks'))
if status ~= 'open' or cancel or fault or tonumber(deadline) <= tonumber(now) then return 0 end
if tonumber(fed) ~= tonumber(index) then return tonumber(fed) > tonumber(index) and 1 or 0 end
local kept = redis.call('TTL', batch)
redis.call('HSET', batch, 'fed', index + 1, 'piece', piece)
if held ~= piece then redis.call('UNLINK', batch .. ':in:' .. held) end
if redis.call('HSETNX', batch, 'started', now) == 1 and hooks and string.find(hooks, 'start', 1, true) then
  hook(batch, prefix, id, 'start', now, keep)
end
if line ~= '' then
  redis.call('HSET', out, index, line)
  redis.call('EXPIRE', out, kept)
  redis.call('HINCRBY', batch, 'failed', 1)
  settle(batch, prefix, id, now, keep)
else
  redis.call('HSET', decision, unpack(ARGV, 10))
  redis.call('EXPIRE', decision, kept)
  redis.call('ZADD', leases, lease, item)
  outlast(leases, kept)
  redis.call('SADD', open, index)
  redis.call('EXPIRE', open, kept)
end
return 1
"""
"""Feed the next state of a batch: as a decision, or, where it cannot be one, as a line that says why.

KEYS: the batch's hash, the set of its open indexes, the piece of results that the index is in, the
decision's hash, the sorted set of leases. ARGV: the batch's id, the decision's id, the index, the number of
the piece it came from, the time now, the line (empty: it becomes a decision), when the decision's lease runs
out, the prefix of our keys, seconds to keep a webhook, then the decision's field names and values in pairs.

Only the index that is next is fed, so that two feeders feed nothing twice; a decision is kept as long as its
batch, so that it cannot vanish before its line is written. Returns 1 when the index is fed (by whomever), 0
when the batch takes no more: it is over or gone, was canceled, failed, or its deadline passed.
"""

FINISH_ITEM = f"""{TELL}{HOOK}{SETTLE}
local id, status, body, now, _, prefix, keep = unpack(ARGV)
local was, channel, batch, custom, door, created, started =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'channel', 'batch', 'custom_id', 'door', 'created',
    'started'))
local ended = {{door or '', created, started or '0'}}
redis.call('ZREM', KEYS[2], id)
redis.call('ZREM', KEYS[3], id)
if was ~= 'open' then return 0 end
redis.call('DEL', KEYS[1])
tell(channel, id .. ' ' .. status .. '\\n' .. body)
local name, index = string.match(batch, '^(%S+) (%d+)$')
local key = prefix .. ':batch:' .. name
if redis.call('SREM', key .. ':open', index) == 0 then return ended end
local out = key .. ':out:' .. string.format('%d', math.floor(index / 1000))
redis.call('HSET', out, index, '{{"index":' .. index .. ',"custom_id":' .. custom .. ',"status":"' .. status
  .. '","' .. (status == 'succeeded' and 'result' or 'error') .. '":' .. body .. '}}')
redis.call('EXPIRE', out, redis.call('TTL', key))
redis.call('HINCRBY', key, status, 1)
settle(key, prefix, name, now, keep)
return ended
"""
"""End an open decision of a batch: once, whoever tries. Keys, arguments and reply are those of `FINISH`.

Its outcome becomes a line of the batch's results; nothing else of it is kept. The last one ends the batch.
"""

STOP_BATCH = f"""{HOOK}{SETTLE}
local id, now, field, value, prefix, keep = unpack(ARGV)
if redis.call('HGET', KEYS[1], 'status') ~= 'open' then return {{}} end
if field ~= '' then redis.call('HSETNX', KEYS[1], field, value) end
settle(KEYS[1], prefix, id, now, keep)
return redis.call('SMEMBERS', KEYS[1] .. ':open')
"""
"""Stop the feeding of an open batch, and end it when nothing of it is open.

ARGV: its id, the time now, the field that says why (`cancel` or `fault`, or empty for a deadline that
passed) and its value, the prefix of our keys, seconds to keep a webhook. Returns the indexes that are open.
"""
