-- The generic cell rate algorithm. A key holds when its whole burst is there again: microseconds since 2026 began, and
-- parts of one, so that a number has room for nanoseconds.
local interval, burst, cost, more = ARGV[1] / 1000, tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = (time[1] - 1767225600) * 1000000 + time[2]
local whole = interval * burst
local full = tonumber(redis.call('GET', KEYS[1]) or now)
-- Further ahead only after the clock was set back, or by other settings.
full = math.min(math.max(full, now), now + whole)
-- A millionth of a token is the numbers' own error.
local room = math.floor((now + whole - full) / interval + 0.000001)
if room < cost then
    return {0, math.floor(full - now)}
end
local taken = math.min(room, cost + more)
if taken > 0 then
    full = full + taken * interval
    redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1)
end
return {taken, math.floor(full - now)}
