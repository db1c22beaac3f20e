-- Answers of this and what follows: 0 done, 1 completed before, 2 lost.
local row = redis.call('HMGET', KEYS[1], 'fence', 'until', 'keep')
if row[1] ~= ARGV[1] then
    return 2
end
if not row[2] then
    return 1
end
local term = tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + term))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', term + tonumber(row[3])))
return 0
