local row = redis.call('HMGET', KEYS[1], 'fence', 'print', 'until', 'answer')
if not row[1] then
    return {3}
end
if not row[3] then
    return {2, row[2], false, row[4]}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {2, row[2], math.max(tonumber(row[3]) - now, 0), false}
