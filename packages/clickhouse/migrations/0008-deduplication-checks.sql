-- Before its first insert, a worker tries here whether ClickHouse ignores an insert whose token it remembers.
CREATE TABLE IF NOT EXISTS deduplication_checks
(
    token String,
    tried_at DateTime DEFAULT now()
)
ENGINE = MergeTree
ORDER BY token
TTL tried_at + INTERVAL 1 DAY
SETTINGS non_replicated_deduplication_window = 1000;
