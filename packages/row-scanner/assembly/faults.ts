// What must follow at a place of a text that is not JSON. JavaScript words them: `expectations` in `src/errors.ts` has the same order.
export const VALUE: i32 = 1
export const NAME_OR_END: i32 = 2
export const NAME: i32 = 3
export const COLON: i32 = 4
export const COMMA_OR_BRACKET: i32 = 5
export const COMMA_OR_BRACE: i32 = 6
export const END: i32 = 7
export const STRING: i32 = 8
export const ESCAPE: i32 = 9
export const HEXADECIMAL: i32 = 10
export const DIGIT: i32 = 11
export const NUMBER_END: i32 = 12
export const FRACTION: i32 = 13
export const EXPONENT: i32 = 14
export const WORD_TRUE: i32 = 15
export const WORD_FALSE: i32 = 16
export const WORD_NULL: i32 = 17
