"""`holdfast nodes`: who is alive, and who works what."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.database import database_option, opened
from holdfast.cli.group import common_options
from holdfast.cli.options import json_option
from holdfast.cli.output import Settings, console, count, print_table, show_span

if TYPE_CHECKING:
    from rich.console import Console

SHARD = "shard-"


@click.command()
@database_option
@json_option
@common_options
@click.pass_obj
def nodes(settings: Settings, address: str, as_json: bool) -> None:
    """List the living nodes, with their shards and roles.

    A node is a process that has joined: a worker, or a program that uses Holdfast. Its leases carry a
    number, the epoch, which grows whenever one changes hands.
    """
    import asyncio

    from holdfast.cli.report import to_json

    document = asyncio.run(_ask(address))
    if as_json:
        click.echo(to_json(document))
    else:
        _print(console(settings), document)


async def _ask(address: str) -> dict[str, Any]:
    import msgspec

    from holdfast.clock import SystemClock

    async with opened(address) as store:
        living = await store.nodes()
        leases = await store.leases()
        groups = await store.shard_groups()
    now = SystemClock().now()
    alive = {node.id for node in living}
    owned = {name for name, (node, _) in leases.items() if node in alive}
    shards = [f"{SHARD}{n}" for g in groups.values() for n in range(g.first, g.first + g.count)]
    documents: list[dict[str, Any]] = []
    for node in sorted(living, key=lambda node: node.id):
        own = {name: epoch for name, (owner, epoch) in leases.items() if owner == node.id}
        try:
            place: Any = msgspec.json.decode(node.place)
        except msgspec.DecodeError:
            place = {}
        documents.append(
            {
                "id": node.id,
                "host": place.get("host"),
                "pid": place.get("pid"),
                "groups": place.get("groups", []),
                "aliveUntil": node.expires,
                "aliveForSeconds": round((node.expires - now).total_seconds(), 3),
                "shards": sorted(int(name.removeprefix(SHARD)) for name in own if name.startswith(SHARD)),
                "roles": sorted(name for name in own if not name.startswith(SHARD)),
                "epoch": max(own.values(), default=0),
                "leases": dict(sorted(own.items())),
            }
        )
    return {"nodes": documents, "shards": len(shards), "unowned": sorted(set(shards) - owned)}


def _print(out: "Console", document: Mapping[str, Any]) -> None:
    from datetime import timedelta

    from rich.text import Text

    if not document["nodes"]:
        out.print(Text("No living nodes. `holdfast worker` starts one.", "dim"))
        return
    rows = [
        (
            node["id"],
            f"{node['host']} {node['pid']}",
            str(len(node["shards"])),
            str(node["epoch"]),
            show_span(timedelta(seconds=max(0.0, node["aliveForSeconds"]))),
            ", ".join(node["roles"]) or ("only sends" if not node["groups"] else ""),
        )
        for node in document["nodes"]
    ]
    headings = ("NODE", "PROCESS", "SHARDS", "EPOCH", "ALIVE FOR", "ROLES")
    print_table(out, headings, rows, ("cyan", "", "bold", "dim", "dim", ""))
    unowned = len(document["unowned"])
    said = f"\n{count(len(rows), 'node')}, {document['shards']} shards"
    out.print(Text(said if not unowned else f"{said}; nobody works {unowned} of them", "dim"))
