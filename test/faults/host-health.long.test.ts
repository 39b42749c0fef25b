import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { startBackend } from '../fakes/backend.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { startRedis } from '../started/redis.ts';
import { until } from '../started/stack.ts';
import { startCrew } from '../started/crew.ts';

setDefaultTimeout(90_000);

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

/** What fresh connections to any of the processes are told while `act` runs, each change of it. */
async function told(crew: Crew, act: () => Promise<void>): Promise<readonly string[]> {
  const said: string[] = [];
  let isOver = false;
  const look = async () => {
    while (!isOver) {
      const now = await crew.health();
      if (said.at(-1) !== now) said.push(now);
      await Bun.sleep(20); // the processes need the machine too
    }
  };
  const looking = look();
  await act();
  isOver = true;
  await looking;
  return said;
}

type Crew = Awaited<ReturnType<typeof startCrew>>;

/** Calls of all accounts through every process, for so long. */
async function callFor(crew: Crew, keys: readonly string[], ms: number): Promise<void> {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;)
    await Promise.all(keys.map((key) => crew.post(key).then((answer) => answer.text())));
}

const PLANS = '[plans.prepaid]\nrps = 100000\nburst = 100000\ncredits = 1_000_000\n';

describe('M21 three processes say one thing, which changes when the host changes', () => {
  test('M21 while Redis is away and when it is back', async () => {
    await using redis = await startRedis();
    const storageLines = `redis = "${redis.url}"\n`;
    await using crew = await startCrew({ backendUrl: backend.url, processes: 3, storageLines, extra: PLANS });
    const keys = [crew.key('scale'), crew.key('scale'), crew.key('prepaid', 1_000_000)];
    await until(async () =>
      (await Promise.all([1, 2, 3, 4].map(crew.health))).every((said) => said === '200 ok'),
    );
    const said = await told(crew, async () => {
      await callFor(crew, keys, 1_000);
      await redis.die();
      await callFor(crew, keys, 8_000);
      await redis.restart('with its data');
      await until(async () => {
        await callFor(crew, keys, 100);
        return (await crew.health()) === '200 ok';
      });
      await callFor(crew, keys, 2_000);
    });
    const away = expect.stringMatching(
      /^200 ok, but the store of shared limits does not answer \(Redis is away: /,
    );
    expect(said).toEqual(['200 ok', away, '200 ok']);
  });

  test.skipIf(!mayMount())('M21 on a full disk, and when it has room again', async () => {
    using disk = smallDisk();
    await using crew = await startCrew({
      backendUrl: backend.url,
      processes: 3,
      dataDir: disk.path,
      extra: PLANS,
    });
    const keys = [crew.key('scale'), ...Array.from({ length: 3 }, () => crew.key('prepaid', 1_000_000))];
    await until(async () =>
      (await Promise.all([1, 2, 3, 4].map(crew.health))).every((said) => said === '200 ok'),
    );
    const said = await told(crew, async () => {
      disk.fill(); // while the write-ahead log is small: one that has grown is written over without more room
      await callFor(crew, keys, 10_000);
      disk.free();
      await until(async () => (await crew.health()) === '200 ok');
      await callFor(crew, keys, 2_000);
    });
    // Charges, usage and leases fail each in its own time; none is told, taken back and told again.
    expect([said[0], said.at(-1)]).toEqual(['200 ok', '200 ok']);
    expect(new Set(said.flatMap(troublesIn)).size).toBeGreaterThan(0);
    expect(said.flatMap((now, i) => troublesIn(now).filter((each) => isToldAgain(each, said, i)))).toEqual(
      [],
    );
    expect(said.length).toBeLessThanOrEqual(8);
    expect(said.join()).toContain('the disk is full');
  });
});

/** The troubles that a health names, without their causes. */
function troublesIn(told: string): readonly string[] {
  const [, clauses = ''] = /^\d+ ok, but (.*)$/.exec(told) ?? /^\d+ (?!ok$)(.*)$/.exec(told) ?? [];
  return clauses === '' ? [] : clauses.split('; ').map((clause) => clause.replace(/ \(.*/, ''));
}

/** Whether a trouble is new at `at` although it was told before. */
function isToldAgain(trouble: string, said: readonly string[], at: number): boolean {
  const wasTold = said.slice(0, at).map((told) => troublesIn(told).includes(trouble));
  return wasTold.includes(true) && wasTold.at(-1) === false;
}

/** Whether this user may mount a file system. */
function mayMount(): boolean {
  using folder = temporaryFolder();
  const isMounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder.path]).success;
  return isMounted && Bun.spawnSync(['umount', folder.path]).success;
}

/** A file system of a few megabytes in memory, which can be filled to the last block. */
function smallDisk() {
  const folder = temporaryFolder();
  Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=6m,mode=700', 'tmpfs', folder.path]);
  const filler = join(folder.path, 'filler');
  return {
    path: folder.path,
    fill: () => void Bun.spawnSync(['dd', 'if=/dev/zero', `of=${filler}`, 'bs=4k']),
    free: () => rmSync(filler),
    [Symbol.dispose]() {
      Bun.spawnSync(['umount', '-l', folder.path]);
      folder[Symbol.dispose]();
    },
  };
}
