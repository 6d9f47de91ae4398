"""What a store promises about wake-ups: who listens hears, soon, if nothing comes between."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from holdfast.store import Store

SOON = 5.0


class Heard:
    """What somebody who listens has heard."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._new = asyncio.Event()

    def hear(self, word: str) -> None:
        self.words.append(word)
        self._new.set()

    async def until(self, word: str) -> None:
        """Wait until it was heard."""
        async with asyncio.timeout(SOON):
            while word not in self.words:
                self._new.clear()
                await self._new.wait()


@asynccontextmanager
async def listening(store: Store) -> AsyncGenerator[Heard]:
    """Somebody who listens; inside, what is rung is heard."""
    heard = Heard()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(store.listen(heard.hear))
        async with asyncio.timeout(SOON):
            while "hello" not in heard.words:
                await store.ring(["hello"])
                await asyncio.sleep(0.01)
        heard.words = [word for word in heard.words if word != "hello"]
        yield heard
        task.cancel()


class BellConformance:
    """What a store promises about wake-ups."""

    async def test_whoever_listens_hears_every_word_in_order(self, store: Store) -> None:
        async with listening(store) as heard:
            await store.ring(["shard 3 from 17", "pauses"])
            await store.ring([])
            await store.ring(["last"])
            await heard.until("last")
        assert [word for word in heard.words if word not in ("", "hello")] == [
            "shard 3 from 17",
            "pauses",
            "last",
        ]

    async def test_everybody_who_listens_hears(self, store: Store) -> None:
        async with listening(store) as one, listening(store) as other:
            await store.ring(["news"])
            await one.until("news")
            await other.until("news")

    async def test_a_store_apart_is_heard_and_hears(self, store: Store) -> None:
        apart = store.apart()
        try:
            async with listening(apart) as there, listening(store) as here:
                await store.ring(["from here"])
                await apart.ring(["from there"])
                for heard in (here, there):
                    await heard.until("from here")
                    await heard.until("from there")
        finally:
            await apart.close()

    async def test_any_number_of_words_is_heard(self, store: Store) -> None:
        words = [f"shard {n} from {'9' * 20}" for n in range(2000)]
        async with listening(store) as heard:
            await store.ring(words)
            await heard.until(words[-1])
        assert [word for word in heard.words if word.startswith("shard")] == words

    async def test_whoever_stops_listening_is_in_nobodys_way(self, store: Store) -> None:
        async with listening(store) as gone:
            pass
        async with listening(store) as heard:
            await store.ring(["news"])
            await heard.until("news")
        assert "news" not in gone.words
