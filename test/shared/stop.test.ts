import { describe, expect, test } from 'bun:test';
import { fired } from '../../shared/stop.ts';

const script = `
  import { stopSignal } from ${JSON.stringify(`${import.meta.dir}/../../shared/stop.ts`)};
  const stop = stopSignal(process.argv[1] === 'supervised');
  const alive = setInterval(() => {}, 1_000_000);
  stop.addEventListener('abort', () => {
    console.log(stop.reason);
    if (process.argv[2] !== 'slow') process.exit(0);
  });
  console.log('up');
`;

async function started(...args: string[]) {
  const child = Bun.spawn([process.execPath, '-e', script, ...args], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const reader = child.stdout.getReader();
  const said = async () => new TextDecoder().decode((await reader.read()).value).trim();
  expect(await said()).toBe('up');
  return { child, said };
}

describe('an app is asked to stop', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('by %s', async (signal) => {
    const { child, said } = await started();
    child.kill(signal);
    expect(await said()).toBe(signal);
    expect(await child.exited).toBe(0);
  });
  test('by the end of its stdin when it is supervised', async () => {
    const { child, said } = await started('supervised');
    child.stdin.end();
    expect(await said()).toBe('the parent ended');
    expect(await child.exited).toBe(0);
  });
  test('at once, with 130, by a second SIGINT', async () => {
    const { child, said } = await started('alone', 'slow');
    child.kill('SIGINT');
    expect(await said()).toBe('SIGINT');
    child.kill('SIGINT');
    expect(await child.exited).toBe(130);
  });
});

test('the end of stdin says nothing to an app that runs alone', async () => {
  const { child, said } = await started('alone');
  child.stdin.end();
  child.kill('SIGTERM');
  expect(await said()).toBe('SIGTERM');
  expect(await child.exited).toBe(0);
});

test('whoever waits for a stop hears of it, also when it came before', async () => {
  const controller = new AbortController();
  const [waiting, pending] = [fired(controller.signal), Promise.resolve('pending')];
  expect(await Promise.race([waiting, pending])).toBe('pending');
  controller.abort();
  expect(await waiting).toBeUndefined();
  expect(await Promise.race([fired(controller.signal), pending])).toBeUndefined();
});
