import type { Words } from './memory.ts'

/**
 * The part of WebAssembly's JavaScript interface (https://webassembly.github.io/spec/js-api/) that the scanner needs.
 * TypeScript declares it only for browsers.
 */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (
    module: object,
    imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  ) => { readonly exports: object }
}
const { Module, Instance } = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly

interface Memory {
  /** `grow` replaces it. */
  readonly buffer: ArrayBuffer
  /** Pages are 64 KiB. */
  grow(pages: number): number
}

type Call = (...values: (number | bigint | boolean)[]) => number

/** The functions of `assembly/index.ts`. */
type Functions = Words<
  | 'scan scanLines scanOtlp scanOtlpJson scanLoki scanLokiJson scanBulk scanDatadog scanHecEvents scanHecLines'
  | 'useWords setSeed outcome addFault'
>
/** Addresses and sizes of `assembly/memory.ts`. */
type Areas = Words<
  | 'BODY BODY_BYTES_MAX COLUMNS_MAX ERRORS FIELDS ID ITEMS ITEM_NUMBERS NUMBERINGS ORIGIN ORIGIN_BYTES_MAX'
  | 'PATHS_MAX PIECES POWERS PROJECT PROJECT_BYTES_MAX ROWS ROWS_ROOM STAMP TAPE TAPE_BYTES_MAX WORDS WORDS_MAX WORD_BYTES'
>
export interface Exports extends Readonly<Record<Functions, Call> & Record<Areas, number>> {
  readonly memory: Memory
}

/** Creates the instance of a module. Its constants are numbers. */
export function instantiate(bytes: Uint8Array, imports: Readonly<Record<string, object>>): Exports {
  const { exports } = new Instance(new Module(bytes), imports as Record<string, Record<string, unknown>>)
  const values = Object.entries(exports as Record<string, { readonly value?: number }>)
  return Object.fromEntries(values.map(([name, each]) => [name, each.value ?? each])) as unknown as Exports
}
