-- Confirmed means on disk. Without these settings ClickHouse confirms an insert that is only in the kernel's page cache, and a
-- power cut loses what was confirmed in the last seconds, after the worker has removed it from the queue.
ALTER TABLE logs MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;

ALTER TABLE dead_letters MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1;
