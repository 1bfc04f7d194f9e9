import json
import sys
import time
from datetime import datetime, timezone
from itertools import islice

from elasticsearch import ConnectionError, Elasticsearch, helpers

client = Elasticsearch(
    'https://logs.example.com/elasticsearch', api_key='slk_…', headers={'Sluice-Idempotency': 'body'}
)


def store(records):
    """Sends up to 500 records again until there is a response."""
    documents = [{'_index': 'logs', '_op_type': 'create', **record} for record in records]
    while True:
        try:
            return helpers.bulk(client, documents, max_retries=10)
        except ConnectionError:
            time.sleep(1)


while lines := list(islice(sys.stdin, 10)):
    store([{**json.loads(line), '@timestamp': datetime.now(timezone.utc).isoformat()} for line in lines])
