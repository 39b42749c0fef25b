import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { addressOf, startChain } from '../fakes/chain.ts';
import { answered, createScriptedSend } from '../fakes/scripted-send.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { queueOver } from './outbox/queue.ts';
import { AUTHORITY, programsOf, startDeploys, until, watchedOf } from './started.ts';

/** The app with one webhook for everything, and program A deployed in slot 5 with a block time. */
function start(path = ':memory:') {
  const chain = startChain();
  chain.deploy(addressOf('A'), 5, AUTHORITY);
  for (const slot of [5, 6, 7]) chain.blockTimes.set(slot, 1_700_000_000 + slot);
  const network = createScriptedSend(() => answered(200));
  const deploys = startDeploys(watchedOf('A', 'B'), [chain], path, network);
  return { deploys, chain, queue: queueOver(deploys.store), network };
}
/** Waits until the block time of `slot` was looked up, and lets time pass until something is posted. */
async function posted({ deploys, queue, network }: ReturnType<typeof start>, slot: bigint): Promise<void> {
  await until(() => queue.times.find(slot) !== undefined);
  while (network.posts.length === 0) await deploys.clock.advance(20);
}

describe('a program that is upgraded', () => {
  test('M8 is logged, and told to a webhook within the same moment, once if it was upgraded twice by then, with slots, label and times (§4.1 program.upgraded)', async () => {
    const { deploys, chain, queue, network } = start();
    await using _ = deploys;
    queue.addWebhook('one');
    await deploys.watch();
    for (const slot of [6, 7]) chain.deploy(addressOf('A'), slot, AUTHORITY);
    await deploys.readAgain();
    await posted({ deploys, chain, queue, network }, 7n);
    const [{ id, text } = { id: '', text: '{}' }] = network.posts;
    expect(JSON.parse(text)).toEqual({
      id,
      event: 'program.upgraded',
      created_at: '2026-11-20T00:01:00.000Z',
      data: {
        program_id: addressOf('A'),
        label: 'A',
        previous_slot: 5,
        deploy_slot: 7,
        deployed_at: '2023-11-14T22:13:27Z',
        detected_at: '2026-11-20T00:01:00.000Z',
      },
    });
    expect(network.posts).toHaveLength(1);
    await deploys.clock.advance(40);
    expect(queue.states()).toEqual(['delivered']);
    const slots = { program: addressOf('A'), label: 'A', previous_slot: 5, deploy_slot: 7 };
    expect(deploys.lines).toContainEqual([slots, 'deployed']);
  });

  test('M8 between the last reading before a stop and the first after it is shown and told to nobody (§4.1 program.upgraded)', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'sluice.db');
    {
      const before = start(path);
      await using deploys = before.deploys;
      before.queue.addWebhook('one');
      await deploys.watch();
    }
    const { deploys, chain, queue } = start(path);
    await using _ = deploys;
    chain.deploy(addressOf('A'), 6, AUTHORITY);
    await deploys.watch();
    const slots = { program: addressOf('A'), label: 'A', previous_slot: 5, deploy_slot: 6 };
    expect(deploys.lines).toContainEqual([slots, 'deployed while deploys was not running']);
    await deploys.readAgain();
    expect(queue.rows('SELECT * FROM events')).toEqual([]);
    expect((await programsOf(await deploys.get()))[0]).toMatchObject({ deploy_slot: 6 });
  });
});
