/** A caller's request id is kept when it is short and printable, so that it can be searched for. */
export const SANE_REQUEST_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/
