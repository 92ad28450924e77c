"""The Lua scripts that decisions are kept with. Each is atomic in Redis; its docstring is its contract.

KEYS[1] is always the decision's hash, KEYS[2] the sorted set of leases, in which the member is the
decision's id and the score the time its lease runs out (seconds since 1970), KEYS[3] the sorted set of
the decisions that no worker has begun yet. Scripts may be sent twice: the second run changes nothing.
"""

from __future__ import annotations

from workers.store.fragments import BEGUN, HOOK, OUTLAST, TELL

SAVE = f"""{OUTLAST}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'accepted' end
if redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[7]) then return 'full' end
local limit = tonumber(ARGV[6])
if limit > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', ARGV[2])
  if redis.call('ZCARD', KEYS[5]) >= limit then return 'too many' end
  redis.call('ZADD', KEYS[5], ARGV[5], ARGV[1])
  redis.call('EXPIRE', KEYS[5], ARGV[3])
end
redis.call('HSET', KEYS[1], unpack(ARGV, 9))
redis.call('EXPIRE', KEYS[1], ARGV[3])
if ARGV[8] ~= '0' then redis.call('SET', KEYS[6], ARGV[1], 'EX', ARGV[8]) end
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', ARGV[2] - ARGV[3])
redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])
outlast(KEYS[2], ARGV[3])
for place = 3, 4 do redis.call('EXPIRE', KEYS[place], ARGV[3]) end
return 'accepted'
"""
"""Accept a decision.

KEYS[4] is the sorted set of its owner's decisions by time, KEYS[5] that of its owner's open ones by
deadline, KEYS[6] the name by which the same request finds it. ARGV: its id, the time now, seconds to keep
it, when its lease runs out, its deadline, the most open decisions of its owner (0: any number), the most
that may wait, the seconds to keep its name (0: it has none), then field names and values in pairs.

Returns `accepted`, `full` when too many wait, or `too many` when its owner has too many open. The sorted
sets are kept as long as the decision accepted last; that of leases as long as any, because a batch's
decisions are kept longer.
"""

CLAIM = f"""{TELL}{HOOK}{BEGUN}
local id, now, until_, token, prefix, keep = unpack(ARGV, 1, 6)
local status, holder, wave, deadline, lane, sent =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'holder', 'wave', 'deadline', 'lane', 'sent'))
if status ~= 'open' then return false end
local lease = redis.call('ZSCORE', KEYS[2], id)
if holder and holder ~= token and lease and tonumber(lease) > tonumber(now) then return false end
redis.call('HSET', KEYS[1], 'holder', token)
begun(KEYS[1], prefix, lane, sent)
local late = tonumber(deadline) <= tonumber(now)
if wave == '0' and not late and redis.call('HSETNX', KEYS[1], 'started', now) == 1 then
  redis.call('ZREM', KEYS[3], id)
  local hooks, watched, channel = unpack(redis.call('HMGET', KEYS[1], 'hooks', 'watched', 'channel'))
  if hooks and string.find(hooks, 'start', 1, true) then hook(KEYS[1], prefix, id, 'start', now, keep) end
  if watched then tell(channel, id .. ' open\\n') end
end
redis.call('ZADD', KEYS[2], until_, id)
return redis.call('HMGET', KEYS[1], unpack(ARGV, 7))
"""
"""Take an open decision that nobody is running, and read fields of it.

ARGV: its id, the time now, when the new lease runs out, a token of the caller's, the prefix of our
keys, seconds to keep a webhook, then the names of the fields. Returns their values (also when the same
caller took it already and the reply was lost), or nil when it is over, gone, or run by another whose
lease is live. One that is past its deadline has not started: whoever takes it ends it.
"""

START = f"""{TELL}{HOOK}{BEGUN}
local id, now, prefix, keep = unpack(ARGV)
local status, hooks, watched, channel, lane, sent =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'hooks', 'watched', 'channel', 'lane', 'sent'))
if status ~= 'open' or redis.call('HSETNX', KEYS[1], 'started', now) == 0 then return 0 end
begun(KEYS[1], prefix, lane, sent)
redis.call('ZREM', KEYS[3], id)
if hooks and string.find(hooks, 'start', 1, true) then hook(KEYS[1], prefix, id, 'start', now, keep) end
if watched then tell(channel, id .. ' open\\n') end
return 1
"""
"""Say that a decision whose first wave is a chord has begun: its shards claim nothing.

ARGV: its id, the time now, the prefix of our keys, seconds to keep a webhook.
"""

ADVANCE = f"""{TELL}
local status, wave, mover, watched, channel, log =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'wave', 'mover', 'watched', 'channel', 'log'))
if status == 'open' and wave == ARGV[2] and mover == ARGV[4] then return 1 end
if status ~= 'open' or wave ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'wave:' .. ARGV[1], 'holder')
redis.call('HSET', KEYS[1], 'wave', ARGV[2], 'wave:' .. ARGV[2], ARGV[3], 'mover', ARGV[4],
  'log', (log or '') .. ARGV[7])
for place = 8, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[place], ARGV[place + 1]) end
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[6])
if watched then tell(channel, ARGV[6] .. ' open\\n') end
return 1
"""
"""Move an open decision from wave ARGV[1] to wave ARGV[2], whose reads are ARGV[3].

ARGV[4] is a token of the caller's, ARGV[5] when the lease of the waiting wave runs out, ARGV[6] the
decision's id, ARGV[7] what to add to the log of its events, ARGV[8..] field names and values in pairs: the
results known so far, and how far it got. Returns 1 when it moved (also when the same caller moved it
already and the reply was lost), 0 when another did, or it is over or gone.
"""

FINISH = f"""{TELL}{HOOK}
local id, status, body, now, retention, prefix, keep = unpack(ARGV)
local was, channel, hooks, owner, planned, door, created, started =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'channel', 'hooks', 'owner', 'planned', 'door', 'created',
    'started'))
redis.call('ZREM', KEYS[2], id)
redis.call('ZREM', KEYS[3], id)
if was ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'status', status, 'body', body, 'finished', now, 'expires', now + retention)
if status == 'succeeded' then redis.call('HSET', KEYS[1], 'done', planned) end
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.find(name, '^wave:') or string.find(name, '^result:') then redis.call('HDEL', KEYS[1], name) end
end
redis.call('HDEL', KEYS[1], 'decision', 'holder', 'mover')
redis.call('EXPIRE', KEYS[1], retention)
if owner then redis.call('ZREM', prefix .. ':open:' .. owner, id) end
if hooks and string.find(hooks, 'completed', 1, true) then
  hook(KEYS[1], prefix, id, 'completed', now, keep)
end
tell(channel, id .. ' ' .. status .. '\\n' .. body)
return {{door or '', created, started or '0'}}
"""
"""End an open decision: once, whoever tries.

ARGV: its id, its terminal status, its body, the time now, the seconds to keep it, the prefix of our
keys, seconds to keep a webhook. What was asked, its waves, results and lease go; whoever listens on its
channels is told, whole. Returns its door, when it was created and when it started (0: never) when this call
ended it, 0 otherwise.
"""

PUT_RESULTS = f"""{TELL}
local status, stage, planned, watched, channel, log =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'stage', 'planned', 'watched', 'channel', 'log'))
if status ~= 'open' then return 0 end
local new = redis.call('HSET', KEYS[1], unpack(ARGV, 3))
if new > 0 then
  local done = redis.call('HINCRBY', KEYS[1], 'done', new)
  redis.call('HSET', KEYS[1], 'log', (log or '') .. table.concat(
    {{'progress', ARGV[2], stage or '0', done, planned or '0'}}, ' ') .. '\\n')
  if watched then tell(channel, ARGV[1] .. ' open\\n') end
end
return 1
"""
"""Keep results of an open decision: ARGV are its id, the time now, then field names and results in pairs.

A decision that is over or gone is left alone: a late result must not bring back a key without expiry.
Lua's stack bounds the pairs of one call (see decisions.PUT_CHUNK).
"""

TAKE_OVER = """
local until_ = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not until_ or tonumber(until_) > tonumber(ARGV[2]) then return 0 end
local deadline, holder, shards, started, lane, sent =
  unpack(redis.call('HMGET', KEYS[1], 'deadline', 'holder', 'shards', 'started', 'lane', 'sent'))
local reached = lane and redis.call('GET', ARGV[6] .. ':begun:' .. lane)
local overtaken = reached and sent and tonumber(reached) > tonumber(sent) + ARGV[7]
local lost = holder or (shards ~= '1' and started) or ARGV[5] == '1' or overtaken
local next = tonumber(lost and ARGV[3] or ARGV[4])
deadline = tonumber(deadline or next)
if deadline > tonumber(ARGV[2]) and deadline < next then next = deadline end
redis.call('ZADD', KEYS[2], next, ARGV[1])
if not lost and deadline > tonumber(ARGV[2]) then return 'waits' end
redis.call('HDEL', KEYS[1], 'holder')
if sent then redis.call('HSET', KEYS[1], 'sent', ARGV[2]) end
return 'lost'
"""
"""Take over a decision whose lease ran out, and free it of whoever held it.

ARGV: its id, the time now, when the new lease runs out, when it does for one that may still wait in its
queue, 1 when its queue is empty, the prefix of our keys, and a margin in seconds. A lease ends with the
deadline at the latest. Returns `lost` to the one caller that must see to it, `waits` when nobody has begun it
and its message may still wait, 0 when another was sooner. A queue is served in order: once a wave that was
sent more than the margin later has begun, its message does not wait any more.
"""

CANCEL = """
local status, holder, shards, started =
  unpack(redis.call('HMGET', KEYS[1], 'status', 'holder', 'shards', 'started'))
if status ~= 'open' then return status end
redis.call('HSETNX', KEYS[1], 'cancel', ARGV[2])
if not holder and (shards == '1' or not started) then return 'free' end
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 'held'
"""
"""Ask for an open decision to be canceled. ARGV: its id, the time now, the channel of the workers.

Returns `free` when nobody runs it, so that it can be ended at once; `held` when whoever does was told,
and ends it once its reads have stopped; its status when it is over; nil when it is gone.
"""

LISTEN = """
local status, channel = unpack(redis.call('HMGET', KEYS[1], 'status', 'channel'))
if status ~= 'open' then return 0 end
if not string.find(' ' .. (channel or '') .. ' ', ' ' .. ARGV[1] .. ' ', 1, true) then
  redis.call('HSET', KEYS[1], 'channel', (channel or '') .. ' ' .. ARGV[1])
end
if ARGV[2] == '1' then redis.call('HSET', KEYS[1], 'watched', '1') end
return 1
"""
"""Have an open decision's outcome told on channel ARGV[1] too, and each of its events when ARGV[2] is 1."""
