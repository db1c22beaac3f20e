"""A client of grpcio that makes calls one after the other and prints how each went, a line of JSON each.

usage: client.py DESCRIPTORS CALLS

CALLS is a list in JSON: target, method, requests (a list of EchoRequest), timeout (seconds, or null), metadata, cancel_after,
service_config (as text; without one nothing is sent again).
"""

import json
import sys
import threading
import time

import echo
import grpc


def call(messages, wish):
    with grpc.insecure_channel(wish["target"], options=options(wish)) as channel:
        requests_stream, replies_stream = echo.METHODS[wish["method"]]
        kind = ("stream" if requests_stream else "unary") + "_" + ("stream" if replies_stream else "unary")
        method = getattr(channel, kind)(
            f"/{echo.SERVICE}/{wish['method']}",
            request_serializer=messages.Request.SerializeToString,
            response_deserializer=messages.Reply.FromString,
        )
        requests = [messages.request(request) for request in wish["requests"]]
        sent = iter(requests) if requests_stream else requests[0]
        more = {"timeout": wish.get("timeout"), "metadata": [tuple(pair) for pair in wish.get("metadata", [])]}
        started = time.monotonic()
        running = method(sent, **more) if replies_stream else method.future(sent, **more)
        if "cancel_after" in wish:
            threading.Timer(wish["cancel_after"], running.cancel).start()
        return outcome(running, replies_stream) | {"elapsed": time.monotonic() - started}


def options(wish):
    if "service_config" in wish:
        return [("grpc.enable_retries", 1), ("grpc.service_config", wish["service_config"])]
    # What is under test resends; a client that did so as well would hide it.
    return [("grpc.enable_retries", 0)]


def outcome(running, replies_stream):
    replies = []
    try:
        for reply in running if replies_stream else [running.result()]:
            replies.append(echo.fields(reply))
    except (grpc.RpcError, grpc.FutureCancelledError):
        pass  # its status is told below
    return {
        "replies": replies,
        "code": running.code().value[0],
        "details": running.details(),
        "initial": echo.text(running.initial_metadata()),
        "trailing": echo.text(running.trailing_metadata()),
    }


def main(descriptors, calls):
    messages = echo.Messages(descriptors)
    for wish in json.loads(calls):
        print(json.dumps(call(messages, wish)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
