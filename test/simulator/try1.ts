import { runSchedule } from '/work/main/test/simulator/schedule.ts'
;(globalThis as any).workers=[]
const o = await runSchedule(Number(process.argv[2]), true)
console.log(o.failure, o.trace.slice(0,Number(process.argv[3]??60)).join('\n'))
for (const w of (globalThis as any).workers) console.log(JSON.stringify(w()))
