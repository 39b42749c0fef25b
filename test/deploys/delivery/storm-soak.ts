import { storm } from './storm.ts';

/** `bun test/deploys/delivery/storm-soak.ts [kills]`: a storm of 100 kills, or as many as wanted; exits 1 if anything was lost or doubled. */
const aftermath = await storm(Number(process.argv[2] ?? 100));
console.log(JSON.stringify(aftermath));
const { lost, doubled, unrecorded } = aftermath;
process.exit(lost.length + doubled.length + unrecorded.length === 0 ? 0 : 1);
