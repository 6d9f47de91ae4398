"""A weight for every instance, as a later release might want."""

import sqlalchemy as sa
from alembic.operations import Operations

revision = "0003"
down_revision = "0002"


def upgrade(op: Operations) -> None:
    op.add_column("instances", sa.Column("weight", sa.Integer(), nullable=False, server_default=sa.text("7")))
