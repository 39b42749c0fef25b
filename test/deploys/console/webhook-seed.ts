import { address, type Address } from '@solana/kit';
import type { Viewer } from '../../../deploys/auth/auth-service.ts';
import type { Sent } from '../../../deploys/outbox/outcome.ts';
import type { ProgramState } from '../../../deploys/watch/change.ts';
import { watchedFrom, type WatchedProgram } from '../../../deploys/watch/watched.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { byAccount, startWebhookWorld, type WebhookWorld } from './webhook-world.ts';
import listed from '../../../deploys/watch/programs.json';

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];
const AUTHORITIES = [
  'JUPhoHnXbTfpN8sUbeqVdd7u5cyNNjJ1FcxHo5XFsFB',
  'AuthXZE2chzjBzHCRkCuJn57VzYmoEzVe9nmDQnLAVbb',
].map((text) => address(text.padEnd(43, 'x').slice(0, 43)));

/** What a day of an ordinary account looks like: four webhooks in every state, and a hundred deliveries. */
export async function startSeededWorld(viewer?: Viewer) {
  const world = startWebhookWorld(viewer, watchedPrograms());
  const { addWebhook, clock, webhooks } = world;
  seedPrograms(world);
  const ids = {
    healthy: (
      await addWebhook(7, {
        url: 'https://hooks.example.com/sluice?team=core',
        description: 'Alerts of the core team',
      })
    ).id,
    failing: (await addWebhook(7, { url: 'https://api.trading.example.net:8443/v2/program-upgrades' })).id,
    paused: (await addWebhook(7, { url: 'https://staging.example.org/hook', programs: someAddresses(3) })).id,
    rotating: (await addWebhook(7, { url: 'https://ops.example.io/in', programs: someAddresses(1) })).id,
  };
  webhooks.pause(byAccount(7), ids.paused);
  for (let hour = 0; hour < 26; hour++) {
    for (let i = 0; i < hour % 4; i++) world.enqueue.ping(ids.healthy, clock.now() + i);
    upgrade(world, hour);
    const answerTo = (url: string): Sent => {
      if (!url.includes('trading')) return timed(200, '{"ok":true}', 38 + ((hour * 37) % 90));
      if (hour < 20) return timed(202, 'accepted', 120 + ((hour * 53) % 300));
      return hour % 2 === 0 ? timed(503, '<h1>Service Unavailable</h1>', 240) : failedWith('timeout');
    };
    await world.attemptDue(({ post }) => answerTo(post.url.href), 60);
    await clock.advance(HOUR_MS - 7 * MINUTE_MS);
    await world.attemptDue(({ post }) => answerTo(post.url.href), 60);
    await clock.advance(7 * MINUTE_MS);
  }
  webhooks.rotate(byAccount(7), ids.rotating, '24h');
  upgrade(world, 26);
  await world.attemptDue(
    ({ post }) => (post.url.href.includes('trading') ? timed(503, '', 240) : timed(204, '', 40)),
    60,
  );
  return { ...world, ids, [Symbol.dispose]: world[Symbol.dispose] };
}

function upgrade({ queue, enqueue, clock }: WebhookWorld, n: number) {
  const program = watchedPrograms()[n % 23]?.address ?? someAddresses(1)[0];
  const slot = 381_000_000 + n * 9_000;
  if (program === undefined) return;
  queue.times.save(BigInt(slot), Math.floor(clock.now() / 1_000) - 41);
  const deploy = { program: address(program), previousSlot: BigInt(slot - 90_000), deploySlot: BigInt(slot) };
  queue.store.transaction(() => enqueue.deploys([deploy], clock.now())).immediate();
  while (queue.outbox.release(clock.now()) === 'more');
}

function seedPrograms(world: WebhookWorld) {
  const states = new Map<string, ProgramState>();
  for (const round of [0, 1, 2]) {
    for (const [i, { address: program }] of watchedPrograms().entries()) {
      const slot = BigInt(360_000_000 + i * 170_003 + (i % 3 <= round ? round * 1_000_000 : 0));
      const ageSeconds = (400_000_000 - Number(slot)) * 0.4;
      world.queue.times.save(slot, Math.floor(START_MS / 1_000 - ageSeconds / 10));
      states.set(program, stateOf(i, slot));
    }
    world.save(states, 400_000_000 + round);
  }
}

function stateOf(i: number, deploySlot: bigint): ProgramState {
  if (i % 11 === 5) return { status: 'frozen', deploySlot };
  if (i % 29 === 7) return { status: 'other_loader' };
  if (i === 40) return { status: 'missing' };
  const upgradeAuthority = AUTHORITIES[i % 2] ?? (someAddresses(1)[0] as Address); // the list is not empty
  return { status: 'upgradeable', deploySlot, upgradeAuthority };
}

function timed(status: number, text: string, ms: number): Sent {
  const phases = {
    dnsMs: ms * 0.1,
    connectMs: ms * 0.15,
    tlsMs: ms * 0.3,
    firstByteMs: ms * 0.4,
    totalMs: ms,
  };
  return { ...answered(status, text), phases } as Sent; // an answer stays an answer
}

function watchedPrograms(): readonly WatchedProgram[] {
  const watched = watchedFrom(listed);
  if (watched.kind !== 'watched') throw new Error(watched.lines.join('\n'));
  return watched.programs;
}

function someAddresses(count: number): Address[] {
  return watchedPrograms()
    .slice(0, count)
    .map(({ address: program }) => program);
}
