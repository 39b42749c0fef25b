import { expect, test } from 'bun:test';
import { type AdmitBySession, createAdmit } from '../../../deploys/api/webhook-requests.ts';
import { createRequestLog } from '../../../deploys/api/request-log.ts';
import type { KeyId } from '../../../shared/keys/api-key.ts';
import type { Identify } from '../../../shared/keys/identify.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';

const keyId = 'k1' as KeyId; // any text will do here
const identify: Identify = (carried) => {
  if (carried.kind === 'none') return { kind: 'missing-key' };
  if (carried.kind !== 'text' || carried.text !== 'good') return { kind: 'invalid-key' };
  return { kind: 'known', caller: { keyId, accountId: 7, plan: undefined, creditsGranted: undefined } };
};
const request = (headers: Record<string, string>) => new Request('http://localhost/', { headers });

function started() {
  const asked: string[] = [];
  const bySession: AdmitBySession = async ({ headers }) => {
    const cookie = headers.get('cookie');
    asked.push(cookie ?? 'none');
    if (cookie === null) return undefined;
    return { kind: 'admitted', by: { accountId: 8, actor: { kind: 'user', userId: cookie } } };
  };
  const deps = { identify, enter: createRequestLog(), clock: createVirtualClock() };
  return { byKey: createAdmit(deps), byEither: createAdmit({ ...deps, bySession }), asked };
}

test('a key admits its account, as often as its rate allows', async () => {
  const { byKey, byEither, asked } = started();
  const admitted = { kind: 'admitted', by: { accountId: 7, actor: { kind: 'key', keyId } } };
  expect(await byKey(request({ 'x-token': 'good' }))).toEqual(admitted as never);
  for (let i = 0; i < 59; i++) await byEither(request({ 'x-token': 'good', cookie: 'c' }));
  expect(await byEither(request({ 'x-token': 'good' }))).toMatchObject({ kind: 'over-rate' });
  expect(asked).toEqual([]);
});

test('a session admits where no key is carried', async () => {
  const { byKey, byEither } = started();
  expect(await byEither(request({ cookie: 'c' }))).toEqual({
    kind: 'admitted',
    by: { accountId: 8, actor: { kind: 'user', userId: 'c' } },
  });
  expect(await byEither(request({}))).toEqual({ kind: 'missing-key' });
  expect(await byKey(request({ cookie: 'c' }))).toEqual({ kind: 'missing-key' });
});

test('a wrong key is not made good by a session', async () => {
  const { byEither, asked } = started();
  const refused = { kind: 'invalid-key' as const };
  expect(await byEither(request({ 'x-token': 'bad', cookie: 'c' }))).toEqual(refused);
  expect(await byEither(request({ 'x-token': 'good', authorization: 'Bearer bad', cookie: 'c' }))).toEqual(
    refused,
  );
  expect(asked).toEqual([]);
});
