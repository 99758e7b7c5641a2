//! The tables that are filled, with those of their columns that are.

use tokio_postgres::types::Type;

/// A table and those of its columns that are filled.
pub(super) type CopiedTable = (&'static str, &'static [(&'static str, Type)]);

pub(super) const STREAMS: CopiedTable = (
    "streams",
    &[
        ("shard", Type::INT2),
        ("id", Type::INT8),
        ("kind", Type::TEXT),
        ("key", Type::TEXT),
        ("seq", Type::INT8),
        ("pos", Type::INT8),
        ("world", Type::TEXT),
        ("tool", Type::TEXT),
        ("status", Type::TEXT),
        ("created_at", Type::INT8),
        ("cost", Type::NUMERIC),
        ("wall_ms", Type::INT8),
        ("summary", Type::TEXT),
        ("caller", Type::TEXT),
        ("called_by", Type::TEXT),
        ("parent", Type::TEXT),
        ("correlation", Type::TEXT),
        ("over_hold", Type::BOOL),
        ("error_code", Type::TEXT),
        ("error_text", Type::TEXT),
        ("sealed", Type::TEXT),
    ],
);
pub(super) const OPENS: CopiedTable =
    ("opens", &[("shard", Type::INT2), ("kind", Type::TEXT), ("stream", Type::INT8)]);
pub(super) const REMARKABLE: CopiedTable =
    ("remarkable", &[("pos", Type::INT8), ("shard", Type::INT2), ("stream", Type::INT8)]);
pub(super) const JOURNAL: CopiedTable = (
    "journal",
    &[
        ("stream", Type::INT8),
        ("class", Type::INT2),
        ("first_seq", Type::INT8),
        ("last_seq", Type::INT8),
        ("at", Type::INT8),
        ("commit_no", Type::INT8),
        ("body", Type::BYTEA),
    ],
);
pub(super) const CLAIMS: CopiedTable = (
    "claims",
    &[("scope", Type::TEXT), ("key", Type::TEXT), ("value", Type::TEXT), ("stream", Type::INT8)],
);
pub(super) const ACCOUNTS: CopiedTable = (
    "accounts",
    &[
        ("id", Type::TEXT),
        ("parent", Type::TEXT),
        ("most", Type::NUMERIC),
        ("held", Type::NUMERIC),
        ("spent", Type::NUMERIC),
    ],
);
pub(super) const HOLDS: CopiedTable = (
    "holds",
    &[
        ("id", Type::TEXT),
        ("shard", Type::INT2),
        ("account", Type::TEXT),
        ("amount", Type::NUMERIC),
        ("reported", Type::NUMERIC),
    ],
);
pub(super) const PRICES: CopiedTable =
    ("prices", &[("tool", Type::TEXT), ("hash", Type::TEXT), ("cost", Type::NUMERIC)]);
pub(super) const AUDIT: CopiedTable = (
    "audit",
    &[
        ("month", Type::INT2),
        ("shard", Type::INT2),
        ("n", Type::INT8),
        ("pos", Type::INT8),
        ("records", Type::INT4),
        ("at", Type::INT8),
        ("body", Type::BYTEA),
    ],
);
pub(super) const FILES: CopiedTable = (
    "artifacts",
    &[
        ("pos", Type::INT8),
        ("world", Type::TEXT),
        ("path", Type::TEXT),
        ("bytes", Type::NUMERIC),
        ("b3", Type::TEXT),
        ("media_type", Type::TEXT),
        ("run", Type::TEXT),
        ("key", Type::TEXT),
        ("direction", Type::TEXT),
        ("at", Type::INT8),
        ("gone_at", Type::INT8),
        ("used_at", Type::INT8),
    ],
);
pub(super) const USES: CopiedTable =
    ("file_uses", &[("world", Type::TEXT), ("path", Type::TEXT), ("run", Type::TEXT)]);
pub(super) const COSTS: CopiedTable = (
    "purged_costs",
    &[
        ("hour", Type::INT8),
        ("world", Type::TEXT),
        ("tool", Type::TEXT),
        ("caller", Type::TEXT),
        ("runs", Type::INT8),
        ("failed", Type::INT8),
        ("cost", Type::NUMERIC),
        ("wall_ms", Type::NUMERIC),
    ],
);
