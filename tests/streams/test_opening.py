"""A URL leads to a stream, or to a sentence that says why not."""

import socket
import sys

import pytest

from holdfast.errors import Invalid, Unavailable
from holdfast.streams import open_stream
from holdfast.streams.memory import MemoryStream
from holdfast.testing.conformance.streams import message


def silent_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("scheme", ["nats", "kafka", "amqp", "redis"])
async def test_a_broker_that_does_not_answer_is_unavailable(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if scheme == "kafka":
        monkeypatch.setattr("holdfast.streams.kafka.CONNECT", 1.0)
    with pytest.raises(Unavailable, match="does not do it now"):
        await open_stream(f"{scheme}://127.0.0.1:{silent_port()}")


@pytest.mark.parametrize(
    ("scheme", "package", "extra"),
    [
        ("nats", "nats", "nats"),
        ("kafka", "confluent_kafka", "kafka"),
        ("amqp", "aio_pika", "rabbitmq"),
        ("rediss", "redis", "redis"),
    ],
)
async def test_a_missing_package_is_told_with_what_to_install(
    scheme: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"holdfast.streams.{extra}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Invalid, match=rf"pip install 'holdfast\[{extra}\]'"):
        await open_stream(f"{scheme}://127.0.0.1:1")


async def test_an_unknown_scheme_is_refused_without_telling_the_password() -> None:
    with pytest.raises(Invalid, match=r"pulsar://host is no broker's URL.*memory://") as refused:
        await open_stream("pulsar://me:secret@host?token=secret")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("query", ["lanes=many", "lanes=0", "patience=-1"])
async def test_numbers_that_make_no_sense_are_refused(query: str) -> None:
    with pytest.raises(Invalid):
        await open_stream(f"memory://?{query}")


async def test_a_setting_that_kafka_does_not_know_is_refused() -> None:
    with pytest.raises(Invalid, match=r"no\.such\.setting"):
        await open_stream("kafka://127.0.0.1:1?no.such.setting=1")


async def test_a_closed_stream_takes_nothing() -> None:
    stream = await open_stream("memory://")
    assert isinstance(stream, MemoryStream)
    await stream.close()
    with pytest.raises(Unavailable, match="closed"):
        await stream.publish("t", [message(1)])
