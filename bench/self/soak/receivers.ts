import { percentile } from '../statistics.ts';
import { type Drained, drained } from '../webhook-world.ts';
import { atMost, exactly, type Finding, said } from './finding.ts';

const [WEBHOOKS, HANGING, UPGRADES, ANSWER_MS] = [100, 80, 5, 200];
const [FIRST_P50_MS_MAX, FIRST_P99_MS_MAX] = [1_000, 2_000];

/** Four fifths of the receivers never answer while several programs are upgraded at once. */
export function hangingReceivers(signal: AbortSignal): Promise<Drained> {
  return drained({ webhooks: WEBHOOKS, answerMs: ANSWER_MS, hanging: HANGING, upgrades: UPGRADES }, signal);
}

/** That those who answer wait for none who does not: their first attempts, from the reading that saw the upgrade. */
export function punctuality({ firstMs, delivered, drainedMs }: Drained): readonly Finding[] {
  const healthy = (WEBHOOKS - HANGING) * UPGRADES;
  const seconds = (ms: number) => (ms / 1_000).toFixed(2);
  return [
    exactly('first attempts at the others', firstMs.length, healthy),
    exactly('delivered', delivered, healthy),
    atMost('first attempt, ms at the median', percentile(firstMs, 0.5), FIRST_P50_MS_MAX),
    atMost('first attempt, ms at p99', percentile(firstMs, 0.99), FIRST_P99_MS_MAX),
    said('last first attempt, last delivery, s', `${seconds(percentile(firstMs, 1))}, ${seconds(drainedMs)}`),
  ];
}
