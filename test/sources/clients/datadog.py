import json
import sys
from itertools import islice

from datadog_api_client import ApiClient, Configuration
from datadog_api_client.v2.api.logs_api import LogsApi
from datadog_api_client.v2.model.http_log import HTTPLog
from datadog_api_client.v2.model.http_log_item import HTTPLogItem

configuration = Configuration(host='https://logs.example.com', enable_retry=True, max_retries=8)
configuration.server_index = None
configuration.api_key['apiKeyAuth'] = 'slk_…'
api = ApiClient(configuration)
api.set_default_header('Sluice-Idempotency', 'body')
logs = LogsApi(api)

while lines := list(islice(sys.stdin, 10)):
    messages = [json.loads(line)['message'] for line in lines]
    try:
        logs.submit_log(HTTPLog([HTTPLogItem(message=message, service='shop', status='error') for message in messages]))
    except Exception as error:
        print(error)
