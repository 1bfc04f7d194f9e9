-- Rows that ClickHouse refused for themselves, with the reason: set aside so that their neighbours could go in.
--
-- They live here and not in Redis because here they survive, cost no memory, and can be queried beside the logs. The
-- text is a String, which takes anything.
CREATE TABLE IF NOT EXISTS dead_letters
(
    id UUID COMMENT 'UUIDv7 of the dead letter',
    project_id LowCardinality(String) COMMENT 'Empty when the text does not tell',
    failed_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    code LowCardinality(String) COMMENT 'ClickHouse''s name of the error, or UNREADABLE_CHUNK',
    reason String CODEC(ZSTD(1)),
    text String COMMENT 'The row as JSON; for UNREADABLE_CHUNK the chunk as it was in the queue' CODEC(ZSTD(3))
)
ENGINE = MergeTree
ORDER BY (project_id, failed_at, id)
TTL toDateTime(failed_at) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000;
