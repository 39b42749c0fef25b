import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import {
  createSeal,
  gaugeSealedElsewhere,
  sealedElsewhere,
  SEALING_KEY_FILE,
  takeSealingKeys,
} from '../../../deploys/webhooks/seal.ts';
import { Secret } from '../../../shared/secret.ts';
import { random, temporaryFolder } from '../../started/gateway.ts';
import { byMe, startWebhooks, testSeal } from './started.ts';

const keyOf = (byte: number) => new Secret(Buffer.alloc(32, byte).toString('base64'));
const owner = { accountId: 1, webhookId: 'one' };
const shown = new Secret('whsec_é');

describe('a sealed secret', () => {
  const { seal, unseal } = createSeal([keyOf(1)], random);

  test('shows nothing of itself, and never looks the same twice', () => {
    const [one, two] = [seal(shown, owner).ciphertext, seal(shown, owner).ciphertext];
    expect(Buffer.from(one).includes('whsec')).toBe(false);
    expect(one).not.toEqual(two);
    expect(one.subarray(0, 12)).not.toEqual(two.subarray(0, 12));
  });

  test('is not opened for another account or webhook', () => {
    const sealed = seal(shown, owner);
    for (const other of [{ accountId: 2 }, { webhookId: 'two' }])
      expect(() => unseal(sealed, { ...owner, ...other })).toThrow();
  });

  test('is not opened when a single bit of it was changed, or its end is missing, wherever', () => {
    const sealed = seal(shown, owner);
    for (let i = 0; i < sealed.ciphertext.length; i++) {
      const ciphertext = Uint8Array.from(sealed.ciphertext);
      ciphertext[i] = (ciphertext[i] ?? 0) ^ 1;
      for (const broken of [ciphertext, sealed.ciphertext.subarray(0, i)])
        expect(() => unseal({ ...sealed, ciphertext: broken }, owner)).toThrow();
    }
  });
});

test('what an older key sealed is still opened, and new secrets are sealed under the newest', () => {
  const old = createSeal([keyOf(1)], random).seal(shown, owner);
  const both = createSeal([keyOf(2), keyOf(1)], random);
  expect(both.unseal(old, owner).reveal()).toBe('whsec_é');
  const alone = createSeal([keyOf(2)], random);
  expect(alone.unseal(both.seal(shown, owner), owner).reveal()).toBe('whsec_é');
  expect(() => alone.unseal(old, owner)).toThrow('encrypted under another key');
});

const configured = new Secret(Buffer.alloc(32, 7).toString('base64'));
const textsOf = (taken: ReturnType<typeof takeSealingKeys>) =>
  taken.kind === 'keys' ? taken.keys.map((key) => key.reveal()) : taken.sentence;

test('a key is made at the first start, for its owner alone, found at the next, and kept behind one of the config', () => {
  using folder = temporaryFolder();
  // What a start leaves that was cut off while it made the key.
  writeFileSync(join(folder.path, `${SEALING_KEY_FILE}.new`), 'half', { mode: 0o644 });
  expect(textsOf(takeSealingKeys(undefined, join(folder.path, 'absent'), random, 0))).toMatch(
    /cannot be used/,
  );
  const made = [...textsOf(takeSealingKeys(undefined, folder.path, random, 0))];
  const path = join(folder.path, SEALING_KEY_FILE);
  expect(made).toEqual([readFileSync(path, 'utf8').trim()]);
  expect(Buffer.from(made[0] ?? '', 'base64')).toHaveLength(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(textsOf(takeSealingKeys(undefined, folder.path, random, 0))).toEqual(made);
  expect(textsOf(takeSealingKeys(configured, folder.path, random, 0))).toEqual([
    configured.reveal(),
    ...made,
  ]);
  expect(readdirSync(folder.path)).toEqual([SEALING_KEY_FILE]);
});

test('a file that holds no key is never written over', () => {
  using folder = temporaryFolder();
  const path = join(folder.path, SEALING_KEY_FILE);
  writeFileSync(path, 'too short\n');
  expect(textsOf(takeSealingKeys(undefined, folder.path, random, 0))).toStartWith(
    `The file ${path} holds no 32 bytes in base64; restore it from a backup`,
  );
  expect(readFileSync(path, 'utf8')).toBe('too short\n');
});

test('no key is made in the place of one that is lost, but one is taken that was put there or into the config', () => {
  using folder = temporaryFolder();
  const path = join(folder.path, SEALING_KEY_FILE);
  const taken = (key?: Secret) => textsOf(takeSealingKeys(key, folder.path, random, 3));
  expect(taken()).toStartWith(
    `The file ${path} is missing, and the secrets of 3 webhooks are encrypted with its key; restore it from a backup, or put in 32 bytes in base64 of your own`,
  );
  expect(existsSync(path)).toBe(false);
  expect(taken(configured)).toEqual([configured.reveal()]);
  writeFileSync(path, configured.reveal());
  expect(taken()).toEqual([configured.reveal()]);
});

test('webhooks whose secrets no key opens are counted, once each, and not when they are deleted', async () => {
  using webhooks = startWebhooks();
  const strange = createSeal([new Secret(Buffer.alloc(32, 9).toString('base64'))], random);
  const ids = [await webhooks.made(), await webhooks.made(), await webhooks.made()].map(({ id }) => id);
  webhooks.rotate(byMe, ids[0] ?? '', '24h');
  const { store } = webhooks.queue;
  const registry = new Registry();
  gaugeSealedElsewhere(registry, store, strange);
  const figure = async () => /^deploys_webhooks_unsignable (\d+)$/m.exec(await registry.metrics())?.[1];
  expect([sealedElsewhere(store, testSeal), await figure()]).toEqual([0, '3']);
  webhooks.remove(byMe, ids[2] ?? '');
  expect(await figure()).toBe('2');
  store.run('UPDATE webhooks SET next_secret_kid = 1 WHERE next_secret_kid IS NOT NULL');
  expect(sealedElsewhere(store, testSeal)).toBe(1);
  webhooks.switchNow(byMe, ids[0] ?? '');
  webhooks.rotate(byMe, ids[0] ?? '', 'now');
  expect(sealedElsewhere(store, testSeal)).toBe(0);
});
