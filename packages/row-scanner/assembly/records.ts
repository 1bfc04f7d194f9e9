import * as codes from './codes'
import * as columns from './columns'
import { Draft } from './draft'
import { Errors } from './errors'
import { fieldOf } from './fields'
import { pieceBytesMax, pieceRowsMax, recordsPerRequestMax, rowBytesPerRequestMax } from './limits'
import { PIECES, PIECES_MAX, ROWS } from './memory'
import { Metadata } from './metadata'
import { Rows } from './rows'
import { afterCharacters, ESCAPED, LONE, textCharacters } from './strings'
import { Node, Tape, TEXT } from './tape'
import { Wire } from './wire'

/** Why the records of a request are not read any further. */
export const TOO_MANY_RECORDS: i32 = 1
const ROWS_TOO_LARGE: i32 = 2
export const INVALID_JSON: i32 = 3
/** It is not the message that the protocol has, in Protocol Buffers or in JSON: why is in `Wire`. */
const INVALID_MESSAGE: i32 = 4
/** It has no records in the expected place. */
export const WRONG_SHAPE: i32 = 5
/** An action of a bulk request is malformed: why is in `malformation`. */
export const MALFORMED_ACTION: i32 = 6

@unmanaged
class Piece {
  rowsEnd!: i32
  rows!: i32
  /** The number of records up to its end. */
  records!: i32
}
const PIECE_BYTES: i32 = 12

/**
 * The records of a request of a shipper. Unlike entries, each has at most one error, and their rows are divided into pieces that are stored one
 * by one. The pieces follow from the records alone, so that a retry has the same ones.
 */
export class Records {
  static count: i32 = 0
  static pieces: i32 = 0

  static clear(): void {
    Rows.clear()
    Errors.count = 0
    Records.count = 0
    Records.pieces = 0
  }

  /**
   * Takes the draft as the next record. Its client cannot react to a rejected record: what is above a limit is repaired, and the metadata says so.
   *
   * @param write adds the members of its metadata. Called again if a mark has no room besides them
   * @returns 0, or why the request is rejected
   */
  static take(write: () => void): i32 {
    if (Records.count === recordsPerRequestMax) return TOO_MANY_RECORDS
    repairStrings()
    if (Metadata.faults === 0) Metadata.begin()
    else Metadata.beginMarked()
    write()
    if (Metadata.faults !== 0 && !Metadata.canMark) {
      Metadata.beginMarked()
      write()
    }
    if (Metadata.faults !== 0) Metadata.mark()
    Metadata.finish()
    Draft.finish()
    Records.count += 1
    if (Records.isTooLarge) return ROWS_TOO_LARGE
    if (Rows.open >= pieceRowsMax || Rows.bytes >= pieceBytesMax) Records.endPiece()
    return 0
  }

  /** Takes a record that cannot become a row. @returns 0, or why the request is rejected */
  static reject(code: i32, where: i32, text: string = ''): i32 {
    if (Records.count === recordsPerRequestMax) return TOO_MANY_RECORDS
    Errors.add(Records.count, code, where, text)
    Records.count += 1
    return 0
  }

  /** Takes the text that was read last as a record that is not JSON. */
  static rejectText(): i32 {
    if (Records.count === recordsPerRequestMax) return TOO_MANY_RECORDS
    Errors.addFault(Records.count)
    Records.count += 1
    return 0
  }

  /** Ends the last piece. */
  static finish(): void {
    if (Rows.open > 0) Records.endPiece()
  }

  /** Ends the records of a message. @returns 0, or why the request is rejected */
  static close(): i32 {
    if (Wire.fault !== 0) return Wire.result === 0 ? INVALID_MESSAGE : Wire.result
    Records.finish()
    return 0
  }

  private static get isTooLarge(): bool {
    return Rows.end - ROWS + Rows.bytes > rowBytesPerRequestMax
  }

  private static endPiece(): void {
    const piece = changetype<Piece>(PIECES + min(Records.pieces, PIECES_MAX - 1) * PIECE_BYTES)
    piece.rows = Rows.open
    Rows.pack()
    piece.rowsEnd = Rows.end
    piece.records = Records.count
    Records.pieces += 1
  }
}

/** Cuts the strings that are too long. Half of a surrogate pair becomes U+FFFD when a string is decoded. */
function repairStrings(): void {
  for (let column = columns.timestamp + 1; column < columns.metadata; column += 1) {
    const address = Draft.valueOf(column)
    if (address === 0) continue
    const value = Node.of(address)
    if (value.has(LONE)) Metadata.note(codes.INVALID_UNICODE)
    const charactersMax = fieldOf(column).charactersMax
    if (value.bytes <= FEW_BYTES || hasAtMostCharacters(value, charactersMax)) continue
    Metadata.note(codes.TOO_LONG)
    Draft.set(column, cut(value, charactersMax))
  }
}

/** The node of the first characters of a string. */
function cut(value: Node, characters: i32): i32 {
  const end = afterCharacters(value.start, value.end, characters, isEscaped(value))
  return Tape.add(value.head, value.start, end)
}

function isEscaped(value: Node): bool {
  return value.kind !== TEXT && value.has(ESCAPED)
}

/** No limit of a string is smaller. */
const FEW_BYTES: i32 = 64

/** Whether a string has at most this many characters. */
export function hasAtMostCharacters(value: Node, charactersMax: i32): bool {
  if (value.bytes <= charactersMax) return true
  if (!isEscaped(value)) return textCharacters(value.start, value.end) <= charactersMax
  return afterCharacters(value.start, value.end, charactersMax, true) === value.end
}
