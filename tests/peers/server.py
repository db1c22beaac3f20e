"""A server of grpcio that answers by script.

usage: server.py DESCRIPTORS ANSWERS

ANSWERS is a list in JSON, one a call, the last one repeated. `{}` does what the request asks for; else:
  code, message, trailing   the status, and the metadata that goes along with it
  late                      sends the header before the status
  delay                     seconds to wait first

Prints {"port": N}, then a line for each call as it begins (method, remaining seconds, metadata) and as it ends.
"""

import json
import sys
import threading
import time
from concurrent import futures

import echo
import grpc

CODES = {code.value[0]: code for code in grpc.StatusCode}


class Answers:
    def __init__(self, answers):
        self.answers = answers
        self.lock = threading.Lock()

    def next(self):
        with self.lock:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def say(line, lock=threading.Lock()):
    with lock:
        print(json.dumps(line), flush=True)


class Handlers:
    def __init__(self, messages, answers):
        self.messages = messages
        self.answers = answers

    def generic(self):
        methods = {name: self.method(name, *streams) for name, streams in echo.METHODS.items()}
        return grpc.method_handlers_generic_handler(echo.SERVICE, methods)

    def method(self, name, requests_stream, replies_stream):
        kinds = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }

        def replies(incoming, context):
            started = time.monotonic()
            say({
                "method": name,
                "remaining": context.time_remaining(),
                "metadata": echo.text(context.invocation_metadata()),
            })
            context.add_callback(lambda: say({"ended": name, "after": time.monotonic() - started}))
            self.script(context)
            requests = incoming if requests_stream else [incoming]
            yield from getattr(self, name.lower())(requests, context)

        def reply(incoming, context):
            return next(replies(incoming, context))

        return kinds[requests_stream, replies_stream](
            replies if replies_stream else reply,
            request_deserializer=self.messages.Request.FromString,
            response_serializer=self.messages.Reply.SerializeToString,
        )

    def script(self, context):
        answer = self.answers.next()
        time.sleep(answer.get("delay", 0))
        if "code" in answer:
            trailing = [tuple(pair) for pair in answer.get("trailing", [])]
            self.fail(context, answer["code"], answer.get("message", ""), trailing, answer.get("late"))

    def asked(self, request, context):
        time.sleep(request.delay_ms / 1000)
        if request.HasField("failure"):
            failure = request.failure
            trailing = [(entry.key, entry.value) for entry in failure.metadata]
            self.fail(context, failure.code, failure.message, trailing, failure.late)

    def fail(self, context, code, message, trailing, late):
        if late:
            context.send_initial_metadata(())
        context.set_trailing_metadata(trailing)
        if code in CODES and code != 0:
            context.abort(CODES[code], message)
        context.set_code(code)
        context.set_details(message)

    def say(self, requests, context):
        for request in requests:
            self.asked(request, context)
            yield self.messages.Reply(text=request.text, number=1)

    def count(self, requests, context):
        (request,) = requests
        time.sleep(request.delay_ms / 1000)
        for number in range(1, request.frames + 1):
            if number > 1:
                time.sleep(request.every_ms / 1000)
            if not context.is_active():
                return
            yield self.messages.Reply(text=request.text, number=number)
        request.delay_ms = 0
        self.asked(request, context)

    def collect(self, requests, context):
        whole = self.messages.Reply()
        for request in requests:
            self.asked(request, context)
            whole.text += request.text
            whole.number += 1
        yield whole

    def chat(self, requests, context):
        for number, request in enumerate(requests, 1):
            self.asked(request, context)
            yield self.messages.Reply(text=request.text, number=number)


def main(descriptors, answers):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    handlers = Handlers(echo.Messages(descriptors), Answers(json.loads(answers)))
    server.add_generic_rpc_handlers([handlers.generic()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    say({"port": port})
    sys.stdin.read()  # until the test that started it has gone
    server.stop(None)


if __name__ == "__main__":
    main(*sys.argv[1:])
