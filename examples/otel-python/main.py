"""Sends the records of Python's logging to Sluice with the OpenTelemetry SDK.

The exporter reads its address and headers from the environment.
"""

import logging
import os

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource

provider = LoggerProvider(
    resource=Resource.create(
        {
            "service.name": os.environ.get("SERVICE", "checkout"),
            "deployment.environment.name": "production",
        }
    )
)
provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
# Not with logging.basicConfig: its format would become a part of the message.
logging.getLogger().addHandler(LoggingHandler(logger_provider=provider))
logging.getLogger().setLevel(logging.INFO)
log = logging.getLogger("payment")

log.info("Order %s accepted", 4711, extra={"order.id": 4711, "user.id": "ada"})
try:
    1 / 0
except ZeroDivisionError:
    log.exception("Payment failed")

# Sends what is left.
provider.shutdown()
