-- The id of each installation, by its prefix in Redis. A Redis without its data has another one, or none: so API and workers learn that it
-- has lost its projects, and that a key which it does not know may be valid.
CREATE TABLE IF NOT EXISTS installations
(
    prefix String,
    id String,
    created_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY (prefix, created_at);
