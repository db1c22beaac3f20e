-- A hash: 'fence' who started it, 'print' what was asked for; and 'until' when its lease ends with 'keep' how long
-- after that it is kept, or else its 'answer'. Times are milliseconds.
local fence, print, term, keep, again = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local row = redis.call('HMGET', KEYS[1], 'fence', 'print', 'until')
local taken = false
if row[1] then
    if not row[3] then
        return {2, row[2], false, redis.call('HGET', KEYS[1], 'answer')}
    end
    if row[1] == fence then
        return {0}
    end
    local left = tonumber(row[3]) - now
    taken = left <= 0 and again and row[2] == print
    if not taken then
        return {2, row[2], math.max(left, 0), false}
    end
end
redis.call('HSET', KEYS[1], 'fence', fence, 'print', print, 'until', string.format('%.0f', now + term), 'keep', keep)
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', term + keep))
return {taken and 1 or 0}
