import json
import logging
import sys

from splunk_handler import SplunkHandler

handler = SplunkHandler(
    host='logs.example.com',
    port=443,
    token='slk_…',
    index='main',
    source='shop',
    flush_interval=1,
    retry_count=8,
)
handler.session.headers['Sluice-Idempotency'] = 'body'
log = logging.getLogger('shop')
log.addHandler(handler)
for line in sys.stdin:
    log.warning('%s', json.loads(line)['message'])
logging.shutdown()
