import json
import logging
import sys

import logging_loki

handler = logging_loki.LokiHandler(
    url='https://logs.example.com/loki/api/v1/push', auth=('sluice', 'slk_…'), tags={'app': 'shop'}, version='1'
)
log = logging.getLogger('shop')
log.addHandler(handler)
for line in sys.stdin:
    log.error('%s', json.loads(line)['message'])
