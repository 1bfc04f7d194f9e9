-- The columns, codecs and partitioning of Sluice's own table.
CREATE TABLE IF NOT EXISTS logs
(
    id UUID,
    project_id LowCardinality(String),
    timestamp DateTime64(6, 'UTC') DEFAULT received_at CODEC(Delta(8), ZSTD(1)),
    received_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    expires_on Date,
    level LowCardinality(String),
    service LowCardinality(String),
    environment LowCardinality(String),
    source LowCardinality(String),
    message String CODEC(ZSTD(1)),
    url String CODEC(ZSTD(1)),
    pathname String CODEC(ZSTD(1)),
    stack String CODEC(ZSTD(1)),
    metadata_text String CODEC(ZSTD(1)),
    INDEX received_at_range received_at TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY expires_on
ORDER BY (project_id, timestamp)
TTL expires_on
SETTINGS ttl_only_drop_parts = 1;
