"""A node that is going to be killed while it relays.

python -m tests.streams.relaying DATABASE STREAM TOPIC
"""

import asyncio
import sys

from holdfast import Holdfast
from holdfast.streams import open_stream
from holdfast.streams.destination import StreamDestination
from tests.documents import document, event, sequence, write

ORDER = document(sequence(write("hello"), event("paid"), write("thanks")), id="order-1", definitionId="order")


async def main(database: str, url: str, topic: str) -> None:
    stream = await open_stream(url)
    streams = {"events": StreamDestination(stream, topic)}
    async with Holdfast(database, definitions=[ORDER], streams=streams) as holdfast:
        while True:
            print("started", await holdfast.dispatch("order"), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
