import logging
import os
import time

import logging_loki
from datadog_api_client import ApiClient, Configuration
from datadog_api_client.v2.api.logs_api import LogsApi
from datadog_api_client.v2.model.http_log import HTTPLog
from datadog_api_client.v2.model.http_log_item import HTTPLogItem
from elasticsearch import Elasticsearch, helpers
from splunk_handler import SplunkHandler

url = os.environ["SLUICE_API_URL"]
key = os.environ["SLUICE_API_KEY"]
service = os.environ["SERVICE"]

elastic = Elasticsearch(f"{url}/elasticsearch", basic_auth=("any", key), http_compress=True)
documents = [{"_index": "shop", "_op_type": "create", "message": "elasticsearch", "service": service, "level": "WARNING"}]
print(helpers.bulk(elastic, documents))

logger = logging.getLogger("loki")
logger.addHandler(
    logging_loki.LokiHandler(
        url=f"{url}/loki/api/v1/push", auth=("any", key), tags={"service": service}, version="1"
    )
)
logger.error("loki")

host, port = url.removeprefix("http://").split(":")
splunk = SplunkHandler(host=host, port=int(port), token=key, index="main", protocol="http", source=service)
logger = logging.getLogger("splunk")
logger.addHandler(splunk)
logger.warning("splunk")

configuration = Configuration(host=url)
configuration.server_index = None
configuration.api_key["apiKeyAuth"] = key
with ApiClient(configuration) as client:
    LogsApi(client).submit_log(HTTPLog([HTTPLogItem(message="datadog", service=service, status="error")]))
time.sleep(1)
splunk.force_flush()
