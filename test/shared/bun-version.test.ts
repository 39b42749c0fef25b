import { describe, expect, test } from 'bun:test';
import manifest from '../../package.json';
import { BUN_VERSION, bunComplaint } from '../../shared/bun-version.ts';

test('the wanted version is the one of package.json, and this run satisfies it', () => {
  expect(BUN_VERSION).toBe(manifest.engines.bun);
  expect(bunComplaint(process.versions.bun)).toBeUndefined();
});

describe('against 1.4.5', () => {
  test.each(['1.4.5', '1.4.6', '1.4.10', '1.5.0', '2.0.0', '1.4.5-canary.3+abc', '1.4.5+7'])(
    '%s may run',
    (running) => {
      expect(bunComplaint(running, '1.4.5')).toBeUndefined();
    },
  );
  test.each(['1.4.4', '1.3.99', '0.9.9', '1.4', '1.4.4-canary.9'])(
    '%s is refused with one sentence',
    (running) => {
      expect(bunComplaint(running, '1.4.5')).toBe(
        `Sluice needs Bun 1.4.5 or newer, and this is Bun ${running}; run it with: npx -y bun@1.4.5 start`,
      );
    },
  );
  test('what is not Bun is refused too', () => {
    expect(bunComplaint(undefined, '1.4.5')).toBe(
      'Sluice needs Bun 1.4.5 or newer; run it with: npx -y bun@1.4.5 start',
    );
  });
});
