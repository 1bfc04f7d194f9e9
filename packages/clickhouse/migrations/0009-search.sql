-- Nearly all the time of a search for a word is the decompression of the messages. LZ4 takes a third of that, and more space on disk
-- (docs/storage.md has the figures). Existing parts keep their form until they are merged.
ALTER TABLE logs MODIFY COLUMN message CODEC(LZ4);
