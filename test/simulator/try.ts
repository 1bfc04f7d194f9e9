import { runSchedule } from '/work/main/test/simulator/schedule.ts'
const from=Number(process.argv[2]), n=Number(process.argv[3])
const t=performance.now(); let bad=0, acked=0, faults=0
for (let s=from;s<from+n;s++){ const o=await runSchedule(s); acked+=o.acknowledged; faults+=o.faults; if(o.failure){bad++; if(bad<=8)console.log(s,o.failure)} }
console.log({n,bad,acked,faults,msPer:(performance.now()-t)/n})
