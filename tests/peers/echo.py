"""The messages and the methods of mamparo.test.v1.Echo, from its descriptors: nothing is generated."""

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

SERVICE = "mamparo.test.v1.Echo"

# What streams: the requests, the replies.
METHODS = {
    "Say": (False, False),
    "Count": (False, True),
    "Collect": (True, False),
    "Chat": (True, True),
}


class Messages:
    """EchoRequest and EchoReply, to and from dictionaries."""

    def __init__(self, descriptors):
        with open(descriptors, "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        self.Request = self._message(pool, "EchoRequest")
        self.Reply = self._message(pool, "EchoReply")

    @staticmethod
    def _message(pool, name):
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"mamparo.test.v1.{name}"))

    def request(self, fields):
        return json_format.ParseDict(fields, self.Request())


def fields(message):
    """A message as a dictionary, with the names that it has in the .proto."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def text(metadata):
    """Metadata as a list of pairs of text."""
    decode = lambda value: value.decode("latin-1") if isinstance(value, bytes) else value
    return [[key, decode(value)] for key, value in metadata or ()]
