import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { PER_CODE } from '../../../deploys/auth/login.ts';
import { totpOf } from '../../../deploys/auth/second-factor.ts';
import { SESSION_COOKIE } from '../../../deploys/auth/sessions.ts';
import { STEP_COOKIE } from '../../../deploys/console/pages/login/sign-in.tsx';
import { paths } from '../../../deploys/console/paths.ts';
import { ADA, COMMAND_LINE, customerOf, logIn, startPeople, startSignedIn } from './people.ts';

const STEP_MS = 30_000;

/** RFC 6238 appendix B, the last six digits. */
test.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [20_000_000_000, '353130'],
])('P10 a code of the app at %i seconds is %s', (seconds, code) => {
  const secret = Buffer.from('12345678901234567890');
  expect(totpOf(secret, ADA).generate({ timestamp: seconds * 1_000 })).toBe(code);
});

test('P10 a code of the app is taken at most a step away, and once: neither its step nor one before it again', async () => {
  using started = startPeople();
  const user = started.made(ADA);
  const { secondFactor } = started.auth;
  const secret = secondFactor.begin(user);
  secondFactor.confirm(user, started.codeNow(secret));
  await started.clock.advance(10 * STEP_MS);
  const codeAt = (away: number) =>
    totpOf(secret, ADA).generate({ timestamp: started.clock.now() + away * STEP_MS });
  const takes = (code: string) => secondFactor.isRight(user, code);
  for (const text of ['', '12345', '1234567', 'abcdef', '１２３４５６', '-12345', '1e5000'])
    expect(takes(text)).toBe(false);
  const inOrder = [-2, 2, -1, 0, 0, -1, 1, 1].map((away) => takes(codeAt(away)));
  expect(inOrder).toEqual([false, false, true, true, false, false, true, false]);
  await started.clock.advance(10 * STEP_MS);
  const code = codeAt(0);
  expect(takes(`${code.slice(0, 3)} ${code.slice(3)}`)).toBe(true);
});

type SignedIn = Awaited<ReturnType<typeof startSignedIn>>;

/** Enrols Ada; gives the secret and the backup codes as shown. */
async function enrol({ ada, user, auth, codeNow }: SignedIn) {
  await ada.post(paths.secondFactor);
  const secret = auth.secondFactor.pending(user);
  if (secret === undefined) throw new Error('no secret waits');
  const shown = await (await ada.get(paths.secondFactor)).text();
  const answer = await ada.post(`${paths.secondFactor}/confirm`, { code: codeNow(secret) });
  const codes = [...(await answer.text()).matchAll(/<code>([a-z2-7]{5}-[a-z2-7]{5})<\/code>/g)].map(
    ([, code = '']) => code,
  );
  return { secret, codes, shown };
}

describe('the second factor', () => {
  let started: SignedIn;
  let factor: Awaited<ReturnType<typeof enrol>>;
  beforeEach(async () => {
    started = await startSignedIn();
    factor = await enrol(started);
  });
  afterEach(() => started[Symbol.dispose]());
  /** A browser after the first step. */
  async function begun(next?: string) {
    const visitor = started.visitor();
    const answer = await logIn(visitor, ADA, next);
    const step = async (code = started.codeNow(factor.secret)) => {
      const { status, headers } = await visitor.post(paths.secondStep, { code, ...(next && { next }) });
      return [status, headers.get('location')] as const;
    };
    return { visitor, step, sentTo: answer.headers.get('location') };
  }

  test('is set up by a code of the app; its key and the backup codes are shown once, and at rest sealed and hashed', async () => {
    const { secret, codes, shown } = factor;
    expect(codes).toHaveLength(10);
    const key = /class="totp-key">([A-Z2-7]{32})</.exec(shown)?.[1] ?? 'no key';
    expect(shown).toContain('<svg');
    const after = await (await started.ada.get(paths.secondFactor)).text();
    for (const text of [key, ...codes]) expect(after).not.toContain(text);
    expect(started.audit.list({ limit: 1 })).toMatchObject([{ action: 'user.second-factor-on' }]);
    const [row] = started.store.query<{ totp_secret: Uint8Array }, []>('SELECT totp_secret FROM users').all();
    expect(Buffer.from(row?.totp_secret ?? []).includes(secret)).toBe(false);
    const hashes = started.store.query<{ hash: Uint8Array }, []>('SELECT hash FROM backup_codes').all();
    expect(hashes).toHaveLength(10);
    expect(hashes.some(({ hash }) => Buffer.from(hash).includes(codes[0] ?? ''))).toBe(false);
  });

  test('makes the password alone worth nothing, and takes no code twice, from whoever it comes', async () => {
    const [one, two] = [await begun('/operator/accounts'), await begun()];
    expect(one.sentTo).toBe(`${paths.secondStep}?next=%2Foperator%2Faccounts`);
    expect(one.visitor.cookies.has(SESSION_COOKIE)).toBe(false);
    expect(await started.viewerOf(one.visitor.request())).toBeUndefined();
    await started.clock.advance(STEP_MS);
    expect(await one.step()).toEqual([303, '/operator/accounts']);
    expect(await started.viewerOf(one.visitor.request())).toMatchObject({ email: ADA });
    expect(one.visitor.cookies.has(STEP_COOKIE)).toBe(false);
    expect((await two.step())[0]).toBe(401);
  });

  test('takes each backup code once, however it is typed', async () => {
    const code = ` ${factor.codes[0]?.toUpperCase().replace('-', ' ')}`;
    expect((await (await begun()).step(code))[0]).toBe(303);
    expect((await (await begun()).step(code))[0]).toBe(401);
  });

  test('cannot be guessed: after five wrong codes every further one waits, from any browser', async () => {
    const guess = async () => (await begun()).step('000000');
    for (let i = 0; i < PER_CODE.burst; i++) expect((await guess())[0]).toBe(401);
    const refused = await (await begun()).visitor.post(paths.secondStep, { code: '000000' });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '300']);
  });

  test('has its first step forgotten after five minutes, or by a new password, and takes no ticket of others', async () => {
    const late = await begun();
    await started.clock.advance(5 * 60_000);
    expect(await late.step()).toEqual([303, '/login']);
    const overtaken = await begun();
    started.auth.users.setPassword(started.user, 'plain another', COMMAND_LINE);
    expect(await overtaken.step()).toEqual([303, '/login']);
    for (const ticket of ['', 'x', 'x.y', 'eyJ9.AAAA']) {
      late.visitor.cookies.set(STEP_COOKIE, ticket);
      expect(await late.step('000000')).toEqual([303, '/login']);
    }
  });

  test('ends every other session when it is turned on, and needs a code to be turned off', async () => {
    const { ada, auth, user } = started;
    const other = started.visitor();
    const off = async (code: string) => ada.post(`${paths.secondFactor}/off`, { code });
    expect((await off(factor.codes[2] ?? '')).headers.get('location')).toBe(
      '/settings?done=second-factor-off',
    );
    expect((await logIn(other, ADA)).headers.get('location')).toBe(paths.secondFactor);
    expect(await started.viewerOf(other.request())).toBeDefined();
    await enrol(started);
    expect(await started.viewerOf(other.request())).toBeUndefined();
    expect(await started.viewerOf(ada.request())).toBeDefined();
    // Neither a new secret nor turning it off is to be had with the session alone.
    await ada.post(paths.secondFactor);
    expect(auth.secondFactor.pending(user)).toBeUndefined();
    expect((await off('000000')).status).toBe(422);
    expect(auth.users.byId(user.id)?.hasSecondFactor).toBe(true);
  });
});

describe('an operator without a second factor', () => {
  test('is asked for one at login, and may go on', async () => {
    using started = startPeople();
    started.made(ADA);
    const visitor = started.visitor();
    const answer = await logIn(visitor, ADA, '/operator/queue');
    expect(answer.headers.get('location')).toBe(`${paths.secondFactor}?next=%2Foperator%2Fqueue`);
    const page = await (await visitor.get(answer.headers.get('location') ?? '')).text();
    expect(page).toContain('href="/operator/queue"');
    expect(await started.viewerOf(visitor.request())).toBeDefined();
  });

  test('sees nothing else where the config requires one, which no customer needs', async () => {
    using started = await startSignedIn({ operatorsNeedSecondFactor: true });
    const { ada } = started;
    expect(await started.viewerOf(ada.request())).toBeUndefined();
    expect((await ada.get('/login')).headers.get('location')).toBe(paths.secondFactor);
    expect(await (await ada.get(paths.secondFactor)).text()).not.toContain('Not now');
    await enrol(started);
    expect(await started.viewerOf(ada.request())).toMatchObject({ email: ADA });
    started.made('bob@example.com', customerOf(started));
    const bob = started.visitor();
    expect((await logIn(bob, 'bob@example.com')).headers.get('location')).toBe('/');
    expect(await started.viewerOf(bob.request())).toBeDefined();
  });
});
