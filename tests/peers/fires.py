"""Fires the one-time schedules of a group, which moto never does: late, early and twice, as a seed says.

usage: fires.py URL GROUP SEED
"""

import json
import random
import sys
import time

import boto3

LOOK, LATE, EARLY = 0.02, 0.03, 0.2


def client(service, url):
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )


def main():
    url, group, seed = sys.argv[1:]
    scheduler, sqs = client("scheduler", url), client("sqs", url)
    chance = random.Random(int(seed))
    known = {}  # by name and when it was made: a name may come again
    print("fires", flush=True)
    while True:
        pages = scheduler.get_paginator("list_schedules").paginate(GroupName=group)
        listed = [(it["Name"], it["CreationDate"]) for page in pages for it in page["Schedules"]]
        known = {key: known[key] for key in listed if key in known}
        for key in listed:
            if key not in known:
                known[key] = plan(scheduler, group, key[0], chance)
            if known[key] and known[key][0] <= time.time():
                fire(scheduler, sqs, group, key[0], known[key], chance)
                known[key] = None
        time.sleep(LOOK)


def plan(scheduler, group, name, chance):
    """When it fires, where and with what; None if it was deleted meanwhile."""
    try:
        target = scheduler.get_schedule(GroupName=group, Name=name)["Target"]
    except scheduler.exceptions.ResourceNotFoundException:
        return None
    # Not the whole second of its expression, so that no test waits for that.
    due = json.loads(target["Input"])["due"] / 1000
    early = chance.random() * EARLY if chance.random() < 0.1 else 0
    return due + chance.random() * LATE - early, target["Arn"].rsplit(":", 1)[1], target["Input"]


def fire(scheduler, sqs, group, name, planned, chance):
    _, queue, body = planned
    queue = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    for _ in range(2 if chance.random() < 0.25 else 1):
        sqs.send_message(QueueUrl=queue, MessageBody=body)
    try:
        scheduler.delete_schedule(GroupName=group, Name=name)
    except scheduler.exceptions.ResourceNotFoundException:
        pass  # it was deleted after it fired


main()
