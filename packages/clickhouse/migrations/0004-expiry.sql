-- ClickHouse accepts a row that has expired by its clock, and drops it at once. With this constraint it rejects the insert instead
-- (VIOLATED_CONSTRAINT). A worker then looks up which rows have really expired, and a wrong clock of ClickHouse loses no row.
ALTER TABLE logs ADD CONSTRAINT IF NOT EXISTS not_expired CHECK expires_on > toDate(now('UTC'));

-- The day of expiry starts at midnight UTC, as in the constraint, and not at midnight in the time zone of the server. Existing parts
-- keep the time at which they are dropped.
ALTER TABLE logs MODIFY TTL toDateTime(expires_on, 'UTC') SETTINGS materialize_ttl_after_modify = 0;
