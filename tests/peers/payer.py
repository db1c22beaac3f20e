"""A client of httpx that pays, and asks again with the same key until it is answered; prints a line of JSON.

usage: payer.py URL KEY WHAT TOGETHER

It asks TOGETHER times at once; each asks again after a broken connection, and when it is told to wait (409 with Retry-After).
"""

import asyncio
import json
import sys

import httpx

MOST_ATTEMPTS = 200


async def pay(client, url, key, what):
    broken = 0
    for _ in range(MOST_ATTEMPTS):
        try:
            answer = await client.post(url, content=what, headers={"Idempotency-Key": key})
        except httpx.TransportError:
            broken += 1
            await asyncio.sleep(0.02)
            continue
        if answer.status_code == 409 and "retry-after" in answer.headers:
            await asyncio.sleep(0.05)
            continue
        return {
            "status": answer.status_code,
            "text": answer.text,
            "type": answer.headers.get("content-type"),
            "replayed": answer.headers.get("idempotent-replayed") == "true",
            "broken": broken,
        }
    raise SystemExit("not answered")


async def main(url, key, what, together):
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        answers = await asyncio.gather(*(pay(client, url, key, what) for _ in range(int(together))))
    print(json.dumps(answers))


asyncio.run(main(*sys.argv[1:]))
