import { expect, test } from 'bun:test';
import { inspect } from 'node:util';
import { Secret } from '../../shared/secret.ts';

const secret = new Secret('hunter2');

test.each([
  ['a template', `${secret}`],
  ['JSON', JSON.stringify({ secret })],
  ['Bun.inspect', Bun.inspect({ secret })],
  ['node:util inspect', inspect({ secret }, { showHidden: true, depth: 9 })],
  ['an error message', String(new Error(`failed with ${secret}`))],
  ['its members', JSON.stringify([Object.keys(secret), Object.getOwnPropertyNames(secret), { ...secret }])],
  ['a structured clone', JSON.stringify(structuredClone({ ...secret }))],
])('%s never shows the value', (_, text) => expect(text).not.toContain('hunter2'));

test('a printed secret says that it is one, and reveal gives the value', () => {
  expect([`${secret}`, JSON.stringify(secret)]).toEqual(['[secret]', '"[secret]"']);
  expect(secret.reveal()).toBe('hunter2');
});
