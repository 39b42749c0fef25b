import { expect, test } from 'bun:test';

test('an aborted sleep leaves no timer behind: the process can end', async () => {
  const script = `
    import { systemClock } from ${JSON.stringify(`${import.meta.dir}/../../shared/clock.ts`)};
    const over = new AbortController();
    const slept = systemClock.sleep(1_000_000, over.signal);
    over.abort();
    await slept;
    await systemClock.sleep(1_000_000, over.signal);
  `;
  const child = Bun.spawn([process.execPath, '-e', script], { stderr: 'inherit', timeout: 4_000 });
  expect(await child.exited).toBe(0);
});

test('a wait that is over, endless or no number warns of nothing, and only the endless one waits (E37)', async () => {
  const script = `
    import { systemClock } from ${JSON.stringify(`${import.meta.dir}/../../shared/clock.ts`)};
    const over = new AbortController();
    const endless = [Infinity, 2 ** 31, 1e300].map((ms) => systemClock.sleep(ms, over.signal).then(() => over.signal.aborted));
    for (const ms of [-1, -0.5, NaN, -Infinity, 0]) await systemClock.sleep(ms, over.signal);
    await systemClock.sleep(20, over.signal);
    over.abort();
    console.log(await Promise.all(endless));
  `;
  const child = Bun.spawn([process.execPath, '-e', script], {
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: 4_000,
  });
  const [out, warnings] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect([out.trim(), warnings]).toEqual(['[ true, true, true ]', '']);
});
