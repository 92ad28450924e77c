"""Pieces of Lua that several scripts share. Each defines one local function."""

from __future__ import annotations

TELL = """
local function tell(channels, message)
  for channel in string.gmatch(channels or '', '%S+') do redis.call('PUBLISH', channel, message) end
end
"""
"""Publish a message on each of some channels, which stand in one string."""

HOOK = """
local function hook(key, prefix, id, event, now, keep)
  local name = id .. ':' .. event
  local copy = prefix .. ':delivery:' .. name
  if redis.call('COPY', key, copy) == 0 then return end
  redis.call('HDEL', copy, 'decision', 'request', 'wave:0', 'channel', 'holder')
  redis.call('HSET', copy, 'event', event, 'state', 'pending')
  redis.call('EXPIRE', copy, keep)
  redis.call('ZADD', prefix .. ':deliveries', now, name)
  redis.call('EXPIRE', prefix .. ':deliveries', keep)
end
"""
"""Have a webhook delivered: a copy of the hash as it is at this moment, and its place in the queue of
deliveries, due now. An event is delivered under one name, so it is queued once."""

OUTLAST = """
local function outlast(key, seconds)
  if redis.call('TTL', key) < tonumber(seconds) then redis.call('EXPIRE', key, seconds) end
end
"""
"""Keep a key for at least some seconds from now."""

SETTLE = """
local function settle(key, prefix, id, now, keep)
  local status, fed, total, piece, pieces, cancel, fault, deadline, retention, canceled, hooks =
    unpack(redis.call('HMGET', key, 'status', 'fed', 'total', 'piece', 'pieces', 'cancel', 'fault',
      'deadline', 'retention', 'canceled', 'hooks'))
  if status ~= 'open' or redis.call('EXISTS', key .. ':open') == 1 then return 0 end
  local rest, ending = total - fed, 'succeeded'
  if fault then ending = 'failed'
  elseif cancel and (rest > 0 or tonumber(canceled) > 0) then ending = 'canceled'
  elseif rest > 0 and tonumber(deadline) <= tonumber(now) then ending = 'expired'
  elseif rest > 0 then return 0 end
  redis.call('HSET', key, 'status', ending, 'finished', now, 'expires', now + retention)
  if rest > 0 then redis.call('HINCRBY', key, ending, rest) end
  redis.call('EXPIRE', key, retention)
  for place = 0, math.floor((total - 1) / 1000) do
    redis.call('EXPIRE', key .. ':out:' .. string.format('%d', place), retention)
  end
  for place = piece, pieces - 1 do
    local lines = key .. ':in:' .. string.format('%d', place)
    if rest > 0 then redis.call('EXPIRE', lines, retention) else redis.call('UNLINK', lines) end
  end
  redis.call('ZREM', prefix .. ':batches', id)
  if hooks and string.find(hooks, 'completed', 1, true) then hook(key, prefix, id, 'completed', now, keep) end
  return 1
end
"""
"""End a batch of which nothing is open and nothing will be fed: all was, or it was canceled, its deadline
passed, or a fault of the whole stopped it. What was not fed counts as what the batch ends as."""

BEGUN = """
local function begun(key, prefix, lane, sent)
  local name = prefix .. ':begun:' .. (lane or '')
  local reached = redis.call('GET', name)
  if sent and (not reached or tonumber(reached) < tonumber(sent)) then
    redis.call('SET', name, sent, 'EX', math.max(1, redis.call('TTL', key)))
  end
end
"""
"""Note how far a lane's queue has been served: `begun:LANE` is the latest time at which a wave that has begun
was sent (seconds since 1970). One that was sent well before that and has not begun is not in the queue. It is
kept as long as the decision that began.
"""
