"""`holdfast deadletters`: messages that nobody could handle, and what becomes of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.database import NO_WORKER, connected, database_option, has_worker, opened, tenant_option
from holdfast.cli.group import common_options
from holdfast.cli.options import json_option
from holdfast.cli.output import Settings, clean, complain, console, count, print_rows, print_table, show_span

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.commit import DeadLetter
    from holdfast.store import Page


@click.group(invoke_without_command=True)
@click.option("--instance", "instance_id", metavar="ID", help="Addressed to this instance.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many at most.")
@database_option
@tenant_option
@json_option
@common_options
@click.pass_context
def deadletters(
    context: click.Context, instance_id: str | None, limit: int, address: str, tenant: str, as_json: bool
) -> None:
    """List messages that could not be handled, or see to one of them."""
    if context.invoked_subcommand is not None:
        return
    import asyncio

    from holdfast.cli.report import to_json

    async def ask() -> "Page[DeadLetter]":
        async with opened(address) as store:
            return await store.dead_letters(tenant, instance_id=instance_id, limit=limit)

    page = asyncio.run(ask())
    if as_json:
        click.echo(to_json({"deadLetters": [_document(one) for one in page.items], "total": page.total}))
    else:
        _print_list(console(context.ensure_object(Settings)), page)


def _print_list(out: "Console", page: "Page[DeadLetter]") -> None:
    from rich.text import Text

    from holdfast.clock import SystemClock

    if not page.items:
        out.print(Text("No dead letters.", "dim"))
        return
    now = SystemClock().now()
    rows = [
        (
            letter.id,
            letter.envelope.instance_id,
            letter.envelope.kind,
            f"{show_span(now - letter.at)} ago",
            letter.error,
        )
        for letter in page.items
    ]
    print_table(out, ("ID", "INSTANCE", "MESSAGE", "DIED", "WHY"), rows, ("cyan", "", "", "dim", "red"))
    out.print(Text(f"\n{count(page.total, 'dead letter')}. Mend the cause, then replay or discard.", "dim"))


@deadletters.command()
@click.argument("letter_id", metavar="ID")
@database_option
@tenant_option
@json_option
@common_options
@click.pass_obj
def show(settings: Settings, letter_id: str, address: str, tenant: str, as_json: bool) -> None:
    """Show one of them: what it says, and why it could not be handled."""
    import asyncio

    from rich.text import Text

    from holdfast.cli.report import to_json

    async def ask() -> "DeadLetter":
        async with opened(address) as store:
            return await store.dead_letter(tenant, letter_id)

    letter = asyncio.run(ask())
    document = _document(letter)
    if as_json:
        click.echo(to_json(document))
        return
    out = console(settings)
    out.print(Text.assemble((clean(letter.id), "bold cyan"), (f"  {letter.envelope.kind}", "dim")))
    rows = [
        ("instance", clean(letter.envelope.instance_id)),
        ("died", letter.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")),
        ("tried", f"{count(letter.attempts, 'time')}, {letter.deaths} of its processes died"),
        ("why", letter.error),
        ("says", to_json(document["payload"])),
    ]
    print_rows(out, rows, ("dim", ""))


@deadletters.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--payload", metavar="JSON", help="Let it say this instead.")
@database_option
@tenant_option
@json_option
@common_options
@click.pass_obj
def replay(
    settings: Settings, ids: tuple[str, ...], payload: str | None, address: str, tenant: str, as_json: bool
) -> None:
    """Send them again, to be handled as if nothing had been."""
    import asyncio

    from holdfast.codec import JsonInvalid, decode, encode_payload

    said: bytes | None = None
    if payload is not None:
        try:
            said = encode_payload(decode(payload))
        except JsonInvalid as problem:
            raise click.UsageError(f"--payload: {problem}") from None

    async def send() -> bool:
        async with connected(address, tenant) as holdfast:
            store = holdfast.store
            for letter_id in ids:
                letter = await store.dead_letter(tenant, letter_id)
                place = await store.replay(tenant, letter_id, said)
                holdfast.node.courier.deliver([letter.envelope], [place])
            return await has_worker(store)

    _tell_end(settings, "replayed", ids, as_json, has_worker=asyncio.run(send()))


@deadletters.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@database_option
@tenant_option
@json_option
@common_options
@click.pass_obj
def discard(settings: Settings, ids: tuple[str, ...], address: str, tenant: str, as_json: bool) -> None:
    """Forget them. What they said is lost."""
    import asyncio

    async def forget() -> None:
        async with opened(address) as store:
            for letter_id in ids:
                await store.discard(tenant, letter_id)

    asyncio.run(forget())
    _tell_end(settings, "discarded", ids, as_json)


def _tell_end(
    settings: Settings, verb: str, ids: tuple[str, ...], as_json: bool, *, has_worker: bool = True
) -> None:
    from rich.text import Text

    from holdfast.cli.report import to_json

    if as_json:
        click.echo(to_json({verb: list(ids)}))
        return
    said = f"{count(len(ids), 'dead letter')} {verb}."
    console(settings).print(Text.assemble(("✓ ", "green"), said), soft_wrap=True)
    if not has_worker:
        complain(settings, NO_WORKER, kind="Note")


def _document(letter: "DeadLetter") -> dict[str, Any]:
    from holdfast.codec import decode
    from holdfast.errors import Invalid

    payload: Any = None
    if letter.envelope.payload is not None:
        try:
            payload = decode(letter.envelope.payload)
        except Invalid:  # that may be why it is here
            payload = repr(letter.envelope.payload)
    about: Mapping[str, Any] = {
        "id": letter.id,
        "tenant": letter.envelope.tenant,
        "instanceId": letter.envelope.instance_id,
        "kind": letter.envelope.kind,
        "error": letter.error,
        "attempts": letter.attempts,
        "deaths": letter.deaths,
        "diedAt": letter.at,
        "sentAt": letter.sent_at,
        "payload": payload,
    }
    return dict(about)
