-- ClickHouse removes parts some time after it has merged them, at once after some restarts. Without these settings the merged part may
-- still be only in the kernel's page cache, and a power cut then loses rows that were on the disk before the merge. The same holds for
-- parts that a replica has fetched from another one.
ALTER TABLE logs MODIFY SETTING min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_fetch = 1;

ALTER TABLE dead_letters MODIFY SETTING min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1,
  min_compressed_bytes_to_fsync_after_fetch = 1;
