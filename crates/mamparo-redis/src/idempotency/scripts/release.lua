local row = redis.call('HMGET', KEYS[1], 'fence', 'until')
if row[1] ~= ARGV[1] then
    return 2
end
if not row[2] then
    return 1
end
redis.call('DEL', KEYS[1])
return 0
