"""The tables of `server.db`: who may do what, and what was done. No table has a secret that could be used again."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

VERSION = 2
"""The version of these tables. `migrations.py` has one step for each."""

SCHEMA = "trainmaster_server"
"""The schema of a PostgreSQL database in which the tables are."""

metadata = MetaData()

# SQLite counts up only an INTEGER.
_Count = BigInteger().with_variant(Integer, "sqlite")


def _user_column(*, primary_key: bool = False) -> Column[str]:
    reference = ForeignKey("users.name", ondelete="CASCADE", onupdate="CASCADE")
    return Column("user_name", String(128), reference, primary_key=primary_key, nullable=False)


version = Table("schema_version", metadata, Column("version", Integer, primary_key=True))

settings = Table(
    "settings",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("is_admin", Boolean, nullable=False),
    # By a group of the provider, decided anew at every sign-in.
    Column("is_admin_by_group", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    # Who the user is at the OpenID Connect provider. A name alone never identifies somebody.
    Column("issuer", Text),
    Column("subject", Text),
    Index("users_by_subject", "issuer", "subject", unique=True),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    _user_column(),
    Column("label", String(200), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("last_used_at", Float),
    Column("revoked_at", Float),
    # The scope: each that is set restricts what the token may do.
    Column("workspace", String(255)),
    Column("role", String(16)),
    Column("run_id", String(255)),
    Index("tokens_by_user", "user_name"),
)

roles = Table(
    "roles",
    metadata,
    Column("workspace", String(255), primary_key=True),
    _user_column(primary_key=True),
    # "granted" by a person, or by a "group" of the provider; the higher role counts.
    Column("source", String(16), primary_key=True),
    Column("role", String(16), nullable=False),
    Index("roles_by_user", "user_name"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    _user_column(),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Index("sessions_by_user", "user_name"),
)

sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    _user_column(),
    Column("expires_at", Float, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", _Count, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("caller", String(255), nullable=False),
    # What the caller showed: "token <id>", "session", "run <id>", "command".
    Column("credential", String(300), nullable=False),
    Column("method", String(16), nullable=False),
    Column("route", Text, nullable=False),
    Column("operation", String(255), nullable=False),
    Column("workspace", String(255), nullable=False),
    Column("target", Text, nullable=False),
    # The status of the answer. None: the server died before there was one.
    Column("status", Integer),
    Column("request_id", String(64), nullable=False),
    Column("address", String(64), nullable=False),
    # How many requests the entry stands for: more than one for those that come many times a second.
    Column("count", Integer, nullable=False, server_default="1"),
    Index("audit_by_workspace", "workspace", "seq"),
    Index("audit_by_time", "at"),
    sqlite_autoincrement=True,
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("caller", String(255), primary_key=True),
    Column("key", String(255), primary_key=True),
    # SHA-256 of method, path, query and body: the same key for something else is an error.
    Column("request", LargeBinary(32), nullable=False),
    Column("created_at", Float, nullable=False),
    # Which server carries the request out, and until when it has said so. Empty: there is an answer.
    Column("server", String(64), nullable=False),
    Column("claimed_until", Float, nullable=False),
    Column("status", Integer),
    Column("headers", LargeBinary),
    Column("body", LargeBinary),
    Index("idempotency_by_time", "created_at"),
)
