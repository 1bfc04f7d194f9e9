-- One row per accepted entry.
--
-- Partitioned by the day a row expires, never by the client's timestamp: a client with scattered timestamps would
-- touch more partitions than one insert may, and poison the batch it shares with others.
CREATE TABLE IF NOT EXISTS logs
(
    id UUID COMMENT 'UUIDv7, made by the API',
    project_id LowCardinality(String),
    timestamp DateTime64(6, 'UTC') DEFAULT received_at COMMENT 'The entry''s own time, or that of its receipt' CODEC(Delta(8), ZSTD(1)),
    received_at DateTime64(3, 'UTC') COMMENT 'When the API received the entry' CODEC(Delta(8), ZSTD(1)),
    expires_on Date COMMENT 'The day from which the row may be dropped',
    level LowCardinality(String),
    service LowCardinality(String),
    environment LowCardinality(String),
    source LowCardinality(String),
    message String CODEC(ZSTD(1)),
    url String CODEC(ZSTD(1)),
    pathname String CODEC(ZSTD(1)),
    stack String CODEC(ZSTD(1)),
    metadata_text String DEFAULT '{}' COMMENT 'The metadata as it was sent: nulls, empty objects and integers of any size included' CODEC(ZSTD(1)),
    -- For analysis: `metadata.user.id` is a path in it. Computed when it is read, since storing its paths as columns makes an
    -- insert cost twice as much (docs/storage.md has the figures, and how to store it all the same). What it cannot hold is
    -- only in metadata_text: nulls, empty objects, one path named twice. Numbers beyond 64 bits are strings in it.
    metadata JSON(max_dynamic_paths = 256) ALIAS multiIf(
        isNotNull(accurateCastOrNull(metadata_text, 'JSON(max_dynamic_paths = 256)')),
        assumeNotNull(accurateCastOrNull(metadata_text, 'JSON(max_dynamic_paths = 256)')),
        isNotNull(accurateCastOrNull(replaceRegexpAll(metadata_text, '([\\[:,])(-?[0-9]{19,}[0-9.eE+-]*|-?[0-9.]+[eE][+]?[0-9]{3,})', '\\1"\\2"'), 'JSON(max_dynamic_paths = 256)')),
        assumeNotNull(accurateCastOrNull(replaceRegexpAll(metadata_text, '([\\[:,])(-?[0-9]{19,}[0-9.eE+-]*|-?[0-9.]+[eE][+]?[0-9]{3,})', '\\1"\\2"'), 'JSON(max_dynamic_paths = 256)')),
        '{}'::JSON(max_dynamic_paths = 256)),
    -- Following the log asks for what was received lately, which the order of the rows does not tell.
    INDEX received_at_range received_at TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY expires_on
ORDER BY (project_id, timestamp)
TTL expires_on
SETTINGS
    ttl_only_drop_parts = 1,
    -- Merges fewer times, more parts at once: with the default of 5, merging a row costs as much as inserting it.
    merge_selector_base = 20,
    non_replicated_deduplication_window = 100000;
