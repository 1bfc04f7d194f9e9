-- A new part has one data file up to this size instead of one or two for each column: the disk waits for a fraction of the files. Merged
-- parts are larger, and have files for each column.
--
-- With a base of 100, ClickHouse rewrites each row fewer times. It lowers the base itself as parts accumulate, so that a partition always
-- has fewer than 50.
--
-- ClickHouse calculates statistics in each merge by default, for joins and for the order of conditions. No query of Sluice needs them.
ALTER TABLE logs MODIFY SETTING min_bytes_for_wide_part = 67108864, merge_selector_base = 100, auto_statistics_types = '';

-- Ids of the same millisecond differ in three digits.
ALTER TABLE logs MODIFY COLUMN id CODEC(ZSTD(1));
