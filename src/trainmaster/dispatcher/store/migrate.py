"""Bringing a database up to the newest revision. The only module that imports Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine

from trainmaster.job.errors import WorkspaceException

LOCATION = Path(__file__).parent / "migrations"


def configuration() -> Config:
    """Alembic's configuration, without a file for it."""
    config = Config()
    # ConfigParser takes a percent sign for the begin of a reference.
    config.set_main_option("script_location", str(LOCATION).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(engine: Engine, shown: str, hint: str = "", begin: str = "") -> None:
    """Run the missing migrations, all or none. `shown` names the database in errors, `begin` starts the transaction."""
    config = configuration()
    try:
        with engine.connect() as connection:
            if begin:
                connection.exec_driver_sql(begin)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
    except Exception as error:  # whatever a migration raises, the person gets one clear error
        raise WorkspaceException(
            f"{shown} cannot be migrated; it was not changed", cause=str(error), hint=hint
        ) from error
    finally:
        engine.dispose()
