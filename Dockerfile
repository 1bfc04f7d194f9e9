# The images of Sluice, one per target: api, worker, query, cli. docs/containers.md describes how to run them.
#
#   docker build --target api --tag sluice-api .
#
# Node is process 1 in all of them. No init is needed: each program handles SIGTERM and SIGINT, and waits for the processes that it starts.
ARG NODE_IMAGE=node:26-bookworm-slim

# Installs the production dependencies from the lockfile. Deletes the other builds and the source maps of Swagger UI (10 MB).
# The layer stays cached until a manifest or the lockfile changes.
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /sluice
# pnpm must not prompt.
ENV CI=true
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY apps/api/package.json apps/api/
COPY apps/cli/package.json apps/cli/
COPY apps/query/package.json apps/query/
COPY apps/worker/package.json apps/worker/
COPY packages/access/package.json packages/access/
COPY packages/clickhouse/package.json packages/clickhouse/
COPY packages/client/package.json packages/client/
COPY packages/ops/package.json packages/ops/
COPY packages/projects/package.json packages/projects/
COPY packages/query-language/package.json packages/query-language/
COPY packages/queue/package.json packages/queue/
COPY packages/records/package.json packages/records/
COPY packages/row-scanner/package.json packages/row-scanner/
COPY packages/rows/package.json packages/rows/
COPY packages/runtime/package.json packages/runtime/
COPY packages/schema/package.json packages/schema/
COPY packages/traces/package.json packages/traces/
RUN npx --yes "$(node --print 'require("./package.json").packageManager')" install --frozen-lockfile --prod \
      --filter @sluice/api... --filter @sluice/cli... --filter @sluice/query... --filter @sluice/worker... \
    && find node_modules/.pnpm/swagger-ui-dist@* \( -name '*.map' -o -name '*-es-*' \) -delete

# Bundles the explorer. The compiler and the libraries stay here: the bundle is all that a browser gets.
FROM dependencies AS explorer
COPY apps/explorer/package.json apps/explorer/
RUN npx --yes "$(node --print 'require("./package.json").packageManager')" install --frozen-lockfile --prod --filter @sluice/explorer...
COPY packages packages
COPY apps/explorer apps/explorer
RUN node apps/explorer/build.mjs

# Common layers of the images. The sources keep their places in the workspace, and pnpm's links stay valid: Node runs
# TypeScript directly, but not below node_modules.
FROM ${NODE_IMAGE} AS runtime
WORKDIR /sluice
COPY --from=dependencies /sluice ./
COPY LICENSE ./
COPY packages packages
ENV NODE_ENV=production
# Numeric, so that an orchestrator can verify that it is not root. Nothing is written: the root file system may be read-only.
USER 1000:1000
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

FROM runtime AS cli
COPY apps/cli apps/cli
LABEL org.opencontainers.image.title="sluice" \
      org.opencontainers.image.description="The Sluice command line: projects, keys, migrations, sending and reading logs."
ENTRYPOINT ["node", "apps/cli/src/main.ts"]
CMD ["help"]

# The services have an ops server. The health check tests whether the process answers, not whether ClickHouse does: an orchestrator
# that restarts unhealthy containers during an outage would only make it worse. A worker fails it after two minutes without any
# answer from Redis, since a restart opens a new connection.
FROM runtime AS service
ENV OPS_HOST=0.0.0.0 OPS_PORT=9090
EXPOSE 9090
HEALTHCHECK --interval=10s --timeout=4s --start-period=10s --retries=3 \
  CMD ["node", "packages/ops/src/health-check-main.ts", "/livez"]

FROM service AS worker
COPY apps/worker apps/worker
LABEL org.opencontainers.image.title="sluice-worker" \
      org.opencontainers.image.description="Moves queued chunks into ClickHouse, in big batches, exactly once."
# The reasons for the options are in packages/local/src/apps.ts.
ENTRYPOINT ["node", "--heap-growing-percent=300", "apps/worker/src/main.ts"]

FROM service AS query
COPY apps/query apps/query
COPY --from=explorer /sluice/apps/explorer/dist apps/explorer/dist
LABEL org.opencontainers.image.title="sluice-query" \
      org.opencontainers.image.description="Serves the query API and the explorer."
ENV QUERY_HOST=0.0.0.0 QUERY_PORT=3001
EXPOSE 3001
ENTRYPOINT ["node", "apps/query/src/main.ts"]

FROM service AS api
COPY apps/api apps/api
LABEL org.opencontainers.image.title="sluice-api" \
      org.opencontainers.image.description="Authenticates and validates requests, and queues their entries."
ENV HOST=0.0.0.0 PORT=3000
EXPOSE 3000
ENTRYPOINT ["node", "--max-semi-space-size=16", "--v8-pool-size=1", "--heap-growing-percent=300", "apps/api/src/main.ts"]
