import { expect, test } from 'bun:test';
import {
  createHashing,
  HASHES_AT_ONCE,
  HASHES_WAITING_MAX,
  makePassword,
  passwordComplaint,
} from '../../../deploys/auth/passwords.ts';
import { random } from './people.ts';

/** Work that ends when the test says so. */
function startWork() {
  const gates: PromiseWithResolvers<boolean>[] = [];
  let [running, most] = [0, 0];
  const verify = async () => {
    most = Math.max(most, ++running);
    const gate = Promise.withResolvers<boolean>();
    gates.push(gate);
    try {
      return await gate.promise;
    } finally {
      running -= 1;
    }
  };
  return {
    work: { verify, hash: () => Promise.resolve('h') },
    gates,
    most: () => most,
    running: () => running,
  };
}

test('four run at once, as many wait as may, and the next is told that it is busy', async () => {
  const { work, gates, most } = startWork();
  const hashing = createHashing(work);
  const begun = Array.from({ length: HASHES_AT_ONCE + HASHES_WAITING_MAX }, () =>
    hashing.verify('p', 'h', 'stranger'),
  );
  expect(await hashing.verify('p', 'h', 'stranger')).toEqual({ kind: 'busy' });
  expect(await hashing.hash('p', 'stranger')).toEqual({ kind: 'busy' });
  for (let i = 0; i < begun.length; i++) {
    gates[i]?.resolve(true);
    await begun[i];
  }
  expect((await Promise.all(begun)).every(({ kind }) => kind === 'right')).toBe(true);
  expect([most(), gates.length]).toEqual([HASHES_AT_ONCE, begun.length]);
});

test('P7 who is known goes before all strangers who wait, in a row of their own', async () => {
  const { work, gates } = startWork();
  const hashing = createHashing(work);
  const strangers = Array.from({ length: HASHES_AT_ONCE + HASHES_WAITING_MAX }, () =>
    hashing.verify('p', 'h', 'stranger'),
  );
  const known = hashing.verify('p', 'h', 'known');
  gates[0]?.resolve(true);
  await strangers[0];
  await new Promise((resolve) => setImmediate(resolve));
  gates[HASHES_AT_ONCE]?.resolve(true);
  expect(await known).toEqual({ kind: 'right' });
  for (let i = 1; i < gates.length; i++) {
    gates[i]?.resolve(true);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(strangers);
});

test('a failure gives its turn on', async () => {
  const { work, gates, running } = startWork();
  const hashing = createHashing(work);
  const begun = Array.from({ length: HASHES_AT_ONCE + 1 }, () => hashing.verify('p', 'h', 'stranger'));
  gates[0]?.reject(new Error('broken'));
  await expect(begun[0]).rejects.toThrow('broken');
  await new Promise((resolve) => setImmediate(resolve));
  expect(running()).toBe(HASHES_AT_ONCE);
  for (const gate of gates) gate.resolve(true);
  await Promise.all(begun.slice(1));
  expect(await hashing.hash('p', 'stranger')).toEqual({ kind: 'hash', hash: 'h' });
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

test('every one of 32 letters is as likely', () => {
  const letters = Array.from(
    { length: 256 },
    (_, byte) => makePassword((n) => new Uint8Array(n).fill(byte))[0],
  );
  const counts = [...Map.groupBy(letters, (letter) => letter).values()].map(({ length }) => length);
  expect([counts.length, new Set(counts)]).toEqual([32, new Set([8])]);
});
