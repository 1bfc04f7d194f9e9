"""A handler for Python's logging that sends records to Sluice. It needs only the standard library of Python 3.9 or newer."""

import http.client
import json
import logging
import math
import queue
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone

# Limits of one request. Sluice accepts 100 entries and 5 MiB. The last entry may add 1.7 MB: two texts as escapes, and metadata.
ENTRIES_MAX = 100
BYTES_MAX = 2 * 1024 * 1024
# Limits of one entry.
TEXT_CHARACTERS_MAX = 65_536
SERVICE_CHARACTERS_MAX = 256
METADATA_BYTES_MAX = 60_000
METADATA_LEVELS_MAX = 8
# How long a record waits for others that go with it.
GATHER_SECONDS = 0.5
# Longer than the API waits for its queue.
REQUEST_TIMEOUT_SECONDS = 40
RETRY_SECONDS_MIN = 0.5
RETRY_SECONDS_MAX = 30
# A longer `Retry-After` is followed by another request after this time.
RETRY_AFTER_SECONDS_MAX = 3_600
# What a retry may resolve, in addition to 5xx. Any other 4xx would be the answer to each further attempt.
RETRIED_STATUSES = {401, 403, 408, 429}

# What each record has. All other attributes come from `extra`.
STANDARD_ATTRIBUTES = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect that is followed turns the POST into a GET, and tells the key to whatever server it names."""

    def redirect_request(self, *_):
        return None


_opener = urllib.request.build_opener(_NoRedirects)


class SluiceHandler(logging.Handler):
    """Sends records from a thread of its own, so that the application does not wait for the network.

    Up to `records_max` records wait in memory. Beyond that, new records are dropped. `close`, which Python calls when the
    program ends, waits up to `close_seconds` for what is left. `dropped` counts the records that were not sent.
    """

    def __init__(self, url, api_key, service, environment=None, records_max=10_000, close_seconds=10):
        super().__init__()
        self.dropped = 0
        # Not the lock of the handler: logging.shutdown holds that one while it waits for the thread.
        self._dropped_lock = threading.Lock()
        self._url = url.rstrip("/") + "/v1/logs"
        self._api_key = api_key
        self._common = {"service": service[:SERVICE_CHARACTERS_MAX], "source": "server"}
        if environment is not None:
            self._common["environment"] = environment
        self._waiting = queue.Queue(maxsize=records_max)
        self._sending = 0
        self._close_seconds = close_seconds
        self._give_up_at = math.inf
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sluice", daemon=True)
        self._thread.start()

    def emit(self, record):
        try:
            self._waiting.put_nowait(self._entry_of(record))
        except queue.Full:
            self._drop(1)
        except Exception:
            self._drop(1)
            self.handleError(record)

    def close(self):
        if not self._closing.is_set():
            self._give_up_at = time.monotonic() + self._close_seconds
            self._closing.set()
            self._thread.join(self._close_seconds + 1)
            self._drop(self._waiting.qsize() + self._sending)
            if self.dropped > 0:
                print(f"sluice: {self.dropped} records were not sent", file=sys.stderr)
        super().close()

    def _drop(self, count):
        with self._dropped_lock:
            self.dropped += count

    def _entry_of(self, record):
        metadata = {
            "logger": record.name,
            "file": record.filename,
            "line": record.lineno,
            "process": record.process,
            "thread": record.threadName,
        }
        extra = {name: value for name, value in vars(record).items() if name not in STANDARD_ATTRIBUTES}
        metadata.update(_json_value(extra, METADATA_LEVELS_MAX))
        if len(json.dumps(metadata)) > METADATA_BYTES_MAX:
            metadata = {"logger": record.name, "error": "the metadata was too large"}
        entry = {
            "level": _level_of(record.levelno),
            "message": _text(record.getMessage()),
            "timestamp": datetime.fromtimestamp(record.created, timezone.utc).isoformat(),
            "metadata": metadata,
            **self._common,
        }
        if record.exc_info:
            entry["stack"] = _text(logging.Formatter().formatException(record.exc_info))
        return json.dumps(entry)

    def _run(self):
        while True:
            batch = self._next_batch()
            if batch:
                self._send("[" + ",".join(batch) + "]")
                self._sending = 0
            elif self._closing.is_set():
                return

    def _next_batch(self):
        batch, size = [], 0
        until = time.monotonic() + GATHER_SECONDS
        while len(batch) < ENTRIES_MAX and size < BYTES_MAX:
            wait = 0 if self._closing.is_set() else until - time.monotonic()
            try:
                entry = self._waiting.get(timeout=wait) if wait > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            batch.append(entry)
            size += len(entry)
            self._sending = len(batch)
        return batch

    def _send(self, body):
        headers = {
            "Authorization": f"Bearer {self._api_key}",
            "Content-Type": "application/json",
            # The same with every attempt: the request is stored once, also after a lost answer.
            "Idempotency-Key": str(uuid.uuid4()),
        }
        request = urllib.request.Request(self._url, body.encode(), headers, method="POST")
        pause = RETRY_SECONDS_MIN
        while True:
            retry_after = 0
            left = max(0.1, self._give_up_at - time.monotonic())
            try:
                with _opener.open(request, timeout=min(left, REQUEST_TIMEOUT_SECONDS)) as response:
                    self._drop(json.load(response)["rejected"])
                    return
            except urllib.error.HTTPError as error:
                with error:
                    reason = _reason_of(error)
                    retry_after = _seconds_of(error.headers.get("Retry-After"))
                if error.code < 500 and error.code not in RETRIED_STATUSES:
                    self._drop(self._sending)
                    print(f"sluice: a request was rejected: {error.code} {reason}", file=sys.stderr)
                    return
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
                # No answer, a part of one, or not one of Sluice.
                pass
            if not self._wait(pause, retry_after):
                self._drop(self._sending)
                return
            pause = min(pause * 2, RETRY_SECONDS_MAX if math.isinf(self._give_up_at) else 1)

    def _wait(self, pause, retry_after):
        """Returns whether there is time for another attempt. The end of the program shortens the pause, but not what Sluice asked for."""
        resume_at = time.monotonic() + retry_after
        if not self._closing.is_set():
            self._closing.wait(max(pause, retry_after))
            pause = 0
        left = max(pause, resume_at - time.monotonic())
        if time.monotonic() + left > self._give_up_at:
            return False
        time.sleep(max(0, left))
        return True


def _reason_of(error):
    try:
        return error.read(2_000).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return "the answer is incomplete"


def _seconds_of(retry_after):
    """The value of `Retry-After`, which Sluice sends as seconds."""
    return min(int(retry_after), RETRY_AFTER_SECONDS_MAX) if (retry_after or "").isdigit() else 0


def _level_of(number):
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warn"
    return "info" if number >= logging.INFO else "debug"


def _text(value):
    # Half of a surrogate pair has no UTF-8 form.
    return value.encode("utf-8", "replace").decode()[:TEXT_CHARACTERS_MAX]


def _json_value(value, levels):
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if levels > 0 and isinstance(value, dict):
        return {_text(str(name)): _json_value(each, levels - 1) for name, each in value.items()}
    if levels > 0 and isinstance(value, (list, tuple, set)):
        return [_json_value(each, levels - 1) for each in value]
    return _text(str(value))
