import { expect, test } from 'bun:test';
import { makePassword, passwordComplaint } from '../../../deploys/users/passwords.ts';
import { random } from './people.ts';

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
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  const letters = new Map<string, number>();
  for (let i = 0; i < 256; i += 4) {
    const four = bytes.slice(i, i + 4);
    const password = makePassword((n) => Uint8Array.from({ length: n }, (_, k) => four[k % 4] ?? 0));
    for (const letter of password.replaceAll('-', '')) letters.set(letter, (letters.get(letter) ?? 0) + 1);
  }
  expect([letters.size, new Set(letters.values()).size]).toEqual([32, 1]);
});
