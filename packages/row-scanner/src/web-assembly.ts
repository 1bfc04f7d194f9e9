/**
 * The part of WebAssembly's JavaScript interface (https://webassembly.github.io/spec/js-api/) that the scanner needs.
 * TypeScript declares it only for browsers.
 */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => Module
  readonly Instance: new (
    module: Module,
    imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  ) => { readonly exports: unknown }
}
interface Module {
  readonly [Symbol.toStringTag]: 'WebAssembly.Module'
}

export interface Memory {
  /** `grow` replaces it. */
  readonly buffer: ArrayBuffer
  /** Pages are 64 KiB. */
  grow(pages: number): number
}

export interface Constant {
  readonly value: number
}

export const { Module, Instance } = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly
