local row = redis.call('HMGET', KEYS[1], 'fence', 'until')
if row[1] ~= ARGV[1] then
    return 2
end
if not row[2] then
    return 1
end
redis.call('HDEL', KEYS[1], 'until', 'keep')
redis.call('HSET', KEYS[1], 'answer', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 0
