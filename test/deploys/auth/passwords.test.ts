import { expect, test } from 'bun:test';
import {
  createHashing,
  HASHES_AT_ONCE,
  HASHES_WAITING_MAX,
  makePassword,
  passwordComplaint,
} from '../../../deploys/auth/passwords.ts';
import { random } from './people.ts';

/** Hashing whose work ends when the test says so. */
function started() {
  const gates: PromiseWithResolvers<boolean>[] = [];
  let [running, most] = [0, 0];
  const verify = () => {
    most = Math.max(most, ++running);
    const gate = Promise.withResolvers<boolean>();
    gates.push(gate);
    return gate.promise.finally(() => running--);
  };
  const hashing = createHashing({ verify, hash: () => Promise.resolve('h') });
  const begin = (count: number) => Array.from({ length: count }, () => hashing.verify('p', 'h', 'stranger'));
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { ...hashing, gates, begin, settled, most: () => most };
}

test('P7 four run at once, as many wait as may, and the next is busy; who is known waits apart and goes first', async () => {
  const { verify, hash, gates, begin, settled, most } = started();
  const strangers = begin(HASHES_AT_ONCE + HASHES_WAITING_MAX);
  expect(await verify('p', 'h', 'stranger')).toEqual({ kind: 'busy' });
  expect(await hash('p', 'stranger')).toEqual({ kind: 'busy' });
  const known = verify('p', 'h', 'known');
  expect(gates).toHaveLength(HASHES_AT_ONCE);
  gates[0]?.resolve(true);
  await settled();
  gates[HASHES_AT_ONCE]?.resolve(true);
  expect(await known).toEqual({ kind: 'right' });
  for (let i = 1; i < gates.length; i++) {
    gates[i]?.resolve(true);
    await settled();
  }
  expect((await Promise.all(strangers)).every(({ kind }) => kind === 'right')).toBe(true);
  expect([gates.length, most()]).toEqual([strangers.length + 1, HASHES_AT_ONCE]);
});

test('a failure gives its turn on', async () => {
  const { hash, gates, begin, settled } = started();
  const [first, ...others] = begin(HASHES_AT_ONCE + 1);
  gates[0]?.reject(new Error('broken'));
  await expect(first).rejects.toThrow('broken');
  await settled();
  expect(gates).toHaveLength(HASHES_AT_ONCE + 1);
  for (const gate of gates) gate.resolve(true);
  await Promise.all(others);
  expect(await hash('p', 'stranger')).toEqual({ kind: 'hash', hash: 'h' });
});

test('nobody’s hash is never right, whatever the password', async () => {
  const hashing = createHashing({ verify: () => Promise.resolve(true), hash: () => Promise.resolve('h') });
  expect(await hashing.verify('a password nobody has', undefined, 'stranger')).toEqual({ kind: 'wrong' });
});

test('a first password has twenty letters that are easy to tell apart, and keeps the rules', () => {
  const made = Array.from({ length: 200 }, () => makePassword(random));
  expect(new Set(made).size).toBe(200);
  for (const password of made) {
    expect(password).toMatch(/^([a-zA2-9]{5}-){3}[a-zA2-9]{5}$/);
    expect(password).not.toMatch(/[ilo01]/);
    expect(passwordComplaint(password, 'ann@example.com')).toBeUndefined();
  }
});
