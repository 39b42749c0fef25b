import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SEALING_KEY_FILE, takeSealingKeys } from '../../../deploys/webhooks/seal.ts';
import { Secret } from '../../../shared/secret.ts';
import { temporaryFolder } from '../../started/gateway.ts';
import { random } from '../outbox/queue.ts';

const configured = new Secret(Buffer.alloc(32, 7).toString('base64'));
const textsOf = (taken: ReturnType<typeof takeSealingKeys>) =>
  taken.kind === 'keys' ? taken.keys.map((key) => key.reveal()) : taken.sentence;

test('a key is made at the first start, for its owner alone, and found at the next', () => {
  using folder = temporaryFolder();
  const made = textsOf(takeSealingKeys(undefined, folder.path, random, 0));
  const path = join(folder.path, SEALING_KEY_FILE);
  expect(made).toEqual([readFileSync(path, 'utf8').trim()]);
  expect(Buffer.from(made[0] ?? '', 'base64')).toHaveLength(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(textsOf(takeSealingKeys(undefined, folder.path, random, 0))).toEqual(made);
  expect(readdirSync(folder.path)).toEqual([SEALING_KEY_FILE]);
});

test('a start that was cut off while it made the key leaves nothing in the way of the next', () => {
  using folder = temporaryFolder();
  writeFileSync(join(folder.path, `${SEALING_KEY_FILE}.new`), 'half', { mode: 0o644 });
  expect(takeSealingKeys(undefined, folder.path, random, 0).kind).toBe('keys');
  expect(statSync(join(folder.path, SEALING_KEY_FILE)).mode & 0o777).toBe(0o600);
});

test('the key of the config seals, and none is made beside it', () => {
  using folder = temporaryFolder();
  expect(textsOf(takeSealingKeys(configured, folder.path, random, 0))).toEqual([configured.reveal()]);
  expect(existsSync(join(folder.path, SEALING_KEY_FILE))).toBe(false);
});

test('a key that comes into the config later goes before the kept one, which still opens', () => {
  using folder = temporaryFolder();
  const [kept] = textsOf(takeSealingKeys(undefined, folder.path, random, 0));
  expect(textsOf(takeSealingKeys(configured, folder.path, random, 0))).toEqual([
    configured.reveal(),
    kept ?? '',
  ]);
});

test('a file that holds no key is never written over', () => {
  using folder = temporaryFolder();
  const path = join(folder.path, SEALING_KEY_FILE);
  writeFileSync(path, 'too short\n');
  expect(textsOf(takeSealingKeys(undefined, folder.path, random, 0))).toStartWith(
    `The file ${path} holds no 32 bytes in base64; put a backup in its place`,
  );
  expect(readFileSync(path, 'utf8')).toBe('too short\n');
});

test('a folder that cannot be written is said', () => {
  using folder = temporaryFolder();
  expect(textsOf(takeSealingKeys(undefined, join(folder.path, 'absent'), random, 0))).toMatch(
    /cannot be used/,
  );
});

test('no key is made in the place of one that is lost, but one is taken that was put there or into the config', () => {
  using folder = temporaryFolder();
  const path = join(folder.path, SEALING_KEY_FILE);
  const taken = (key?: Secret) => textsOf(takeSealingKeys(key, folder.path, random, 3));
  expect(taken()).toStartWith(
    `The file ${path} is not there, and 3 webhooks are sealed under what it held; put a backup in its place, or 32 bytes in base64 of your own`,
  );
  expect(existsSync(path)).toBe(false);
  expect(taken(configured)).toEqual([configured.reveal()]);
  writeFileSync(path, configured.reveal());
  expect(taken()).toEqual([configured.reveal()]);
});
