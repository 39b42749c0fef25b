console.log("ORIGIN", performance.timeOrigin);
import * as calls from './calls.ts';
const seed = Number(process.argv[2]); const part = process.argv[3] as never;
(globalThis as any).PROBE = { seed, n: Number(process.argv[4] ?? 15) };
await calls.fuzz([part], seed, 0.001);
