"""Emits log records with OpenTelemetry's exporter for Python: SERVICE and COUNT are arguments, the rest is in OTEL_… variables."""

import logging
import sys

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource

service, count = sys.argv[1], int(sys.argv[2])
provider = LoggerProvider(resource=Resource.create({"service.name": service}))
provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(), max_export_batch_size=250))
logger = logging.getLogger("checkout")
logger.setLevel(logging.DEBUG)
logger.addHandler(LoggingHandler(level=logging.DEBUG, logger_provider=provider))

for i in range(count - 1):
    logger.warning("declined %d é", i, extra={"cart": i, "total": 9.99})
try:
    raise ValueError("no funds")
except ValueError:
    logger.exception("failed")
provider.shutdown()
