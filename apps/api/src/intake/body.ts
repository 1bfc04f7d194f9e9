import { isUtf8 } from 'node:buffer'
import { Problem, problems } from '../problems.ts'

/** @throws Problem `empty_body` */
export function checkNotEmpty(body: Buffer): void {
  if (body.length === 0) throw new Problem('empty_body', problems.empty_body.detail)
}

/** @throws Problem `empty_body`, `invalid_utf8` */
export function checkBody(body: Buffer): void {
  checkNotEmpty(body)
  if (!isUtf8(body)) throw new Problem('invalid_utf8', problems.invalid_utf8.detail)
}
