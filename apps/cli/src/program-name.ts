/** How users call the command line. Every help page, advice and error that names a command starts with it. */
export const SLUICE = 'sluice'
