export function buildExplorer(): Promise<void>
