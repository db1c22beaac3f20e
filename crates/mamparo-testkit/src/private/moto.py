"""Starts moto's server on a port of 127.0.0.1, with what its threads get wrong set right.

- Threads give way only where they wait: moto looks whether a message is free and takes it in two steps, and SQS in one.
- Requests to DynamoDB are one at a time, and a transaction that fails puts back its own items; moto copies the whole table
  before each, and puts all of it back, with what others have written meanwhile.
- What it looks up for each request, the folders and methods of its own code, it looks up once, and it keeps connections.
- Nobody waits here until a message is too old; moto counts all of them three times to see whether one is. The clock that says which
  of them are visible, is asked for each at each touch of their queue, and is a quick one here.
"""

import copy
import functools
import logging
import sys
import threading
import time
import types

from moto import backends
from moto.core import responses, utils
from moto.dynamodb import models
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler
from moto.server import MotoRequestHandler, main
from moto.sqs import models as sqs

sys.setswitchinterval(10)
logging.getLogger("werkzeug").setLevel(logging.ERROR)

lock, act = threading.RLock(), DynamoHandler.call_action


def alone(*arguments, **named):
    with lock:
        return act(*arguments, **named)


write = models.DynamoDBBackend.transact_write_items


def transact(self, items):
    before = []
    for operation in (next(iter(item.values())) for item in items):
        table = self.tables.get(operation["TableName"])
        if table is not None and table.has_range_key:
            key = operation.get("Key") or operation["Item"]
            first, second = DynamoType(key[table.hash_key_attr]), DynamoType(key[table.range_key_attr])
            before.append((table.items[first], second, copy.deepcopy(table.items[first].get(second))))
    try:
        return write(self, items)
    except Exception:
        for of, key, item in before:
            if item is None:
                of.pop(key, None)
            else:
                of[key] = item
        raise


def copied(what):
    return what if isinstance(what, Table) else copy.deepcopy(what)


modules = frozenset(backends.list_of_moto_modules())
backends.list_of_moto_modules = lambda: modules
responses.method_names_from_class = functools.cache(utils.method_names_from_class)
MotoRequestHandler.protocol_version = "HTTP/1.1"
DynamoHandler.call_action = alone
models.DynamoDBBackend.transact_write_items = transact
models.copy = types.SimpleNamespace(deepcopy=copied)
sqs.SQSBackend.is_message_valid_based_on_retention_period = lambda *_: True
sqs.unix_time_millis = lambda: time.time() * 1000

main(["--host", "127.0.0.1", "--port", sys.argv[1]])
