import { expect, test } from 'bun:test';
import { bunComplaint } from '../../shared/process.ts';

const script = `
  import { stopSignal } from ${JSON.stringify(`${import.meta.dir}/../../shared/process.ts`)};
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

test('an app is stopped by SIGINT, and at once, with 130, by a second one', async () => {
  const { child, said } = await started('alone', 'slow');
  child.kill('SIGINT');
  expect(await said()).toBe('SIGINT');
  child.kill('SIGINT');
  expect(await child.exited).toBe(130);
});

test('the end of stdin stops an app that is supervised, and says nothing to one that runs alone', async () => {
  const [supervised, alone] = [await started('supervised'), await started('alone')];
  supervised.child.stdin.end();
  alone.child.stdin.end();
  expect(await supervised.said()).toBe('the parent ended');
  alone.child.kill('SIGTERM');
  expect(await alone.said()).toBe('SIGTERM');
  expect(await Promise.all([supervised.child.exited, alone.child.exited])).toEqual([0, 0]);
});

test('an older Bun, and what is not Bun, is refused with one sentence', () => {
  for (const running of ['1.4.5', '1.4.6', '1.4.10', '1.5.0', '2.0.0', '1.4.5-canary.3+abc', '1.4.5+7'])
    expect(bunComplaint(running, '1.4.5')).toBeUndefined();
  const use = 'run it with: npx -y bun@1.4.5 start';
  for (const running of ['1.4.4', '1.3.99', '0.9.9', '1.4', '1.4.4-canary.9'])
    expect(bunComplaint(running, '1.4.5')).toBe(
      `Sluice needs Bun 1.4.5 or newer, and this is Bun ${running}; ${use}`,
    );
  expect(bunComplaint(undefined, '1.4.5')).toBe(`Sluice needs Bun 1.4.5 or newer; ${use}`);
});
