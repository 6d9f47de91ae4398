"""What becomes of a stimulus that was meant for one instance and expired: a dead letter.

The letter holds the message that the instance would have got, so that an operator can replay it. What
was meant for nobody in particular just goes; looking for what has expired is each store's own work.
"""

from datetime import datetime
from hashlib import sha256

import msgspec

from holdfast.commit import DeadLetter, Envelope, KeptStimulus


def letter_of(stimulus: KeptStimulus, instance_id: str, shard: int, now: datetime) -> DeadLetter:
    """The dead letter of an expired stimulus for this instance, which lives in that shard."""
    # The input is passed on as it lies: whatever it is, it must not keep the sweep from going on.
    resume = {"key": stimulus.key, "input": msgspec.Raw(stimulus.payload or b"{}")}
    if stimulus.correlation_id is not None:
        resume["correlation_id"] = stimulus.correlation_id
    return DeadLetter(
        id=_id_of(stimulus),
        envelope=Envelope(
            tenant=stimulus.tenant,
            instance_id=instance_id,
            shard=shard,
            kind="resume",
            payload=msgspec.json.encode(resume),
        ),
        error=f"Nobody waited for it in instance {instance_id} until it expired at "
        f"{stimulus.expires.isoformat()}.",
        attempts=stimulus.tries,
        deaths=0,
        at=now,
        sent_at=stimulus.sent_at,
    )


def _id_of(stimulus: KeptStimulus) -> str:
    # Not the stimulus's own: a letter of that name may lie there already, and would stop the sweep.
    named = [stimulus.tenant, stimulus.id, stimulus.expires]
    return f"expired-{sha256(msgspec.json.encode(named)).hexdigest()[:32]}"
