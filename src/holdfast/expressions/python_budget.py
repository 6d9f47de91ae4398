"""What one Python expression may spend: steps, and characters read or built.

Two numbers count everything down, so the limits hold in sum and not only one operation at a time:
ten thousand texts of a hundred thousand characters are as much too much as one long one. Nothing
here looks at a clock. An expression that fits once fits always, on any machine.
"""

from typing import Any

from holdfast.expression import ExpressionFailed
from holdfast.expressions.size import ITEM, weigh

STEPS = 100_000
CHARACTERS = 4_000_000


class Budget:
    """What is left for one evaluation."""

    __slots__ = ("characters", "steps")

    def __init__(self, steps: int, characters: int) -> None:
        self.steps = steps
        self.characters = characters

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise ExpressionFailed(
                "The expression takes too many steps. Let it go through fewer items, or leave the work to "
                "an activity."
            )

    def spend(self, characters: int) -> None:
        """For what is about to be built, before it is."""
        self.characters -= characters
        if self.characters < 0:
            raise ExpressionFailed(
                "The expression reads or builds too much: its values have too many characters or items."
            )

    def spend_items(self, count: int) -> None:
        self.spend(count * ITEM)

    def read(self, value: Any) -> None:
        """For what is about to be walked through as a whole: compared, hashed, written, copied."""
        self.spend(len(value) if type(value) is str else weigh(value, self.characters))
