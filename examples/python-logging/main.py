"""Logs with Python's logging, to Sluice and to the terminal."""

import logging
import os
import sys

from sluice_handler import SluiceHandler

handler = SluiceHandler(
    url=os.environ["SLUICE_API_URL"],
    api_key=os.environ["SLUICE_API_KEY"],
    service=os.environ.get("SERVICE", "checkout"),
    environment="production",
)
logging.basicConfig(level=logging.DEBUG, handlers=[handler, logging.StreamHandler()])
log = logging.getLogger("checkout.payment")

log.debug("Connecting")
log.info("Order %s accepted", 4711, extra={"order": {"id": 4711, "total": 12.5}, "user": "ada"})
log.warning("Slow answer: half a pair \ud83d, and %s", float("nan"), extra={"ratio": float("nan"), "file": object})
try:
    1 / 0
except ZeroDivisionError:
    log.exception("Payment failed")

for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 0):
    log.info("number %d", number)
