"""The keys under which runs wait."""

from holdfast.bookmark import key_of


def callback_key(machine: str, status: str | int, name: str, foreign_id: str) -> str:
    """Where a run waits for one of its callbacks, and where a callback finds it."""
    return key_of("Machine.Callback", [machine, status, name, foreign_id])


def private_key(run_id: str, number: int) -> str:
    """For waits that are addressed by their id only."""
    return key_of("Machine.Wait", [run_id, number])
