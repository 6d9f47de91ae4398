"""From a broker's URL to a stream that is connected.

    memory://                       in this process, for tests
    nats://host:4222                JetStream
    kafka://host:9092,other:9092    names with dots in the query go to librdkafka
    amqp://user:password@host/      RabbitMQ 3.9 or newer; amqps with TLS
    redis://host:6379/0             Redis 6.2 or newer; rediss with TLS

In the query `lanes` says how many a new topic has, `patience` after how many seconds of silence a member
is taken for dead.
"""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from holdfast.errors import Invalid
from holdfast.stream import LANES, PATIENCE, Stream
from holdfast.streams.memory import MemoryStream


async def open_stream(url: str) -> Stream:
    """Connected. Raises `Invalid`, and `Unavailable` when nobody answers."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    try:
        lanes = int(options.pop("lanes", LANES))
        patience = float(options.pop("patience", PATIENCE))
        keep = int(options.pop("keep", 0))
        replicas = int(options.pop("replicas", 1))
    except ValueError as problem:
        raise Invalid(f"A number in the query of {_hidden(url)} is none: {problem}.") from problem
    if lanes < 1 or patience <= 0:
        raise Invalid("A topic needs at least one lane, and patience some time.")
    place = urlunsplit(parts._replace(query=urlencode(options)))
    try:
        match parts.scheme:
            case "memory":
                return MemoryStream()
            case "nats" | "tls":
                from holdfast.streams.nats import NatsStream

                return await NatsStream.open(place, lanes=lanes, patience=patience, replicas=replicas)
            case "kafka":
                from holdfast.streams.kafka import KafkaStream

                return await KafkaStream.open(parts.netloc, options, patience=patience)
            case "amqp" | "amqps":
                from holdfast.streams.rabbitmq import RabbitStream

                return await RabbitStream.open(place, lanes=lanes, patience=patience)
            case "redis" | "rediss" | "unix":
                from holdfast.streams.redis import RedisStream

                return await RedisStream.open(place, lanes=lanes, patience=patience, keep=keep)
            case _:
                raise Invalid(
                    f"{_hidden(url)} is no broker's URL. Use memory://, nats://host, kafka://host:9092, "
                    f"amqp://user:password@host/ or redis://host/0."
                )
    except ImportError as missing:
        extra = {"tls": "nats", "amqp": "rabbitmq", "amqps": "rabbitmq", "rediss": "redis", "unix": "redis"}
        name = extra.get(parts.scheme, parts.scheme)
        raise Invalid(
            f"A package for {name} is missing: pip install 'holdfast[{name}]'. {missing}"
        ) from missing


def _hidden(url: str) -> str:
    """Without its password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))
