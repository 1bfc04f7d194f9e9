import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** The page at `/docs`. Its URLs are relative, so that a proxy can serve it under a path prefix. */
export const referencePage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Sluice: API reference</title>
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <div id="reference"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`

/** Shows the document only. There is no form for requests, because API keys must not be used in browsers. */
export const referenceScript = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  supportedSubmitMethods: [],
  validatorUrl: null,
  plugins: [{ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } }],
})
`

/** Forbids inline scripts and other servers. Swagger UI needs style attributes, but no inline style elements. */
export const referencePagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "style-src-attr 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The files of the page that are part of Swagger UI, with their media types. */
export const referenceAssets = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
} as const

export interface ReferenceAsset {
  readonly content: Buffer
  readonly gzipped: Buffer
}

/** Reads a file of the page into memory. */
export async function loadAsset(name: keyof typeof referenceAssets): Promise<ReferenceAsset> {
  const content = await readFile(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`)))
  return { content, gzipped: await promisify(gzip)(content) }
}
