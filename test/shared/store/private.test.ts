import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { childEnv, ROOT } from '../../started/process.ts';

test('a process knows how many descriptors it may have, and when they are short or all in use', async () => {
  const script = `
    import { openSync, closeSync } from 'node:fs';
    import { descriptorsMax, descriptorTrouble } from ${JSON.stringify(join(ROOT, 'shared/store/private.ts'))};
    const max = descriptorsMax();
    const seen = [max, descriptorTrouble(max)];
    const held = [];
    try { for (;;) held.push(openSync('/dev/null', 'r')); } catch { seen.push(descriptorTrouble(max)); }
    for (const fd of held.splice(-5)) closeSync(fd);
    seen.push(descriptorTrouble(max));
    for (const fd of held) closeSync(fd);
    console.log(JSON.stringify(seen));`;
  const child = Bun.spawn(['sh', '-c', 'ulimit -n 100; exec "$0" -e "$1"', process.execPath, script], {
    env: childEnv(),
    stdout: 'pipe',
  });
  expect(JSON.parse(await child.stdout.text())).toEqual([
    100,
    null,
    { what: 'no file descriptor is left', cause: 'ulimit -n is 100', stops: true },
    { what: 'file descriptors are short', cause: 'about 95 of 100 are in use', stops: false },
  ]);
});
