import { describe, expect, test } from 'bun:test';
import { PER_CODE } from '../../../deploys/auth/login.ts';
import { totpOf } from '../../../deploys/auth/second-factor.ts';
import { SESSION_COOKIE } from '../../../deploys/auth/sessions.ts';
import { STEP_COOKIE } from '../../../deploys/console/pages/login/sign-in.tsx';
import { paths } from '../../../deploys/console/paths.ts';
import { ADA, COMMAND_LINE, logIn, PASSWORD, startPeople, startSignedIn } from './people.ts';

const STEP_MS = 30_000;

/** RFC 6238 appendix B, the last six digits. */
describe('P10 a code of the app', () => {
  test.each([
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ])('at %i seconds is %s', (seconds, code) => {
    const secret = Buffer.from('12345678901234567890');
    expect(totpOf(secret, ADA).generate({ timestamp: seconds * 1_000 })).toBe(code);
  });

  /** Somebody who has set it up a while ago. */
  async function enrolled() {
    const started = startPeople();
    const user = started.made(ADA);
    const { secondFactor } = started.auth;
    const secret = secondFactor.begin(user);
    secondFactor.confirm(user, started.codeNow(secret));
    await started.clock.advance(10 * STEP_MS);
    const codeAt = (away: number) =>
      totpOf(secret, ADA).generate({ timestamp: started.clock.now() + away * STEP_MS });
    return { ...started, codeAt, takes: (code: string) => secondFactor.isRight(user, code) };
  }

  test.each([
    [-2, false],
    [-1, true],
    [0, true],
    [1, true],
    [2, false],
  ])('of %i steps away is taken: %p', async (away, isTaken) => {
    using started = await enrolled();
    expect(started.takes(started.codeAt(away))).toBe(isTaken);
  });
  test('counts once: neither its step nor one before it is taken again', async () => {
    using started = await enrolled();
    expect(started.takes(started.codeAt(0))).toBe(true);
    expect(started.takes(started.codeAt(0))).toBe(false);
    expect(started.takes(started.codeAt(-1))).toBe(false);
    expect(started.takes(started.codeAt(1))).toBe(true);
  });
  test.each(['', '12345', '1234567', 'abcdef', '１２３４５６', '-12345', '1e5000'])(
    'is not %p',
    async (text) => {
      using started = await enrolled();
      expect(started.takes(text)).toBe(false);
    },
  );
  test('may be typed with a space in the middle', async () => {
    using started = await enrolled();
    const code = started.codeAt(0);
    expect(started.takes(`${code.slice(0, 3)} ${code.slice(3)}`)).toBe(true);
  });
});

/** Enrols Ada; gives the secret and the backup codes as shown. */
async function enrol({ ada: visitor, ...started }: Awaited<ReturnType<typeof startSignedIn>>) {
  await visitor.post(paths.secondFactor);
  const user = started.auth.users.list()[0];
  const secret = user && started.auth.secondFactor.pending(user);
  if (secret === undefined) throw new Error('no secret waits');
  const shown = await (await visitor.get(paths.secondFactor)).text();
  const answer = await visitor.post(`${paths.secondFactor}/confirm`, { code: started.codeNow(secret) });
  const codes = [...(await answer.text()).matchAll(/<code>([a-z2-7]{5}-[a-z2-7]{5})<\/code>/g)].map(
    ([, code = '']) => code,
  );
  return { secret, codes, shown };
}

describe('the second factor', () => {
  test('is set up by a code of the app; its key and the backup codes are shown once', async () => {
    using started = await startSignedIn();
    const { ada: visitor } = started;
    const { codes, shown } = await enrol(started);
    expect(codes).toHaveLength(10);
    const key = /class="totp-key">([A-Z2-7]{32})</.exec(shown)?.[1] ?? '';
    expect(key).not.toBe('');
    expect(shown).toContain('<svg');
    const after = await (await visitor.get(paths.secondFactor)).text();
    expect([after.includes(key), codes.some((code) => after.includes(code))]).toEqual([false, false]);
    expect(started.audit.list({ limit: 1 })).toMatchObject([{ action: 'user.second-factor-on' }]);
  });

  test('is at rest sealed and hashed', async () => {
    using started = await startSignedIn();
    const { secret, codes } = await enrol(started);
    const [row] = started.store.query<{ totp_secret: Uint8Array }, []>('SELECT totp_secret FROM users').all();
    expect(Buffer.from(row?.totp_secret ?? []).includes(secret)).toBe(false);
    const hashes = started.store.query<{ hash: Uint8Array }, []>('SELECT hash FROM backup_codes').all();
    expect(hashes).toHaveLength(10);
    expect(hashes.some(({ hash }) => Buffer.from(hash).includes(codes[0] ?? ''))).toBe(false);
  });

  test('makes the password alone worth nothing', async () => {
    using started = await startSignedIn();
    const { secret } = await enrol(started);
    const other = started.visitor();
    const first = await logIn(other, ADA, '/operator/accounts');
    expect(first.headers.get('location')).toBe(`${paths.secondStep}?next=%2Foperator%2Faccounts`);
    expect(other.cookies.has(SESSION_COOKIE)).toBe(false);
    expect(await started.viewerOf(other.request())).toBeUndefined();
    await started.clock.advance(STEP_MS);
    const second = await other.post(paths.secondStep, {
      code: started.codeNow(secret),
      next: '/operator/accounts',
    });
    expect([second.status, second.headers.get('location')]).toEqual([303, '/operator/accounts']);
    expect(await started.viewerOf(other.request())).toMatchObject({ email: ADA });
    expect(other.cookies.has(STEP_COOKIE)).toBe(false);
  });

  test('takes no code twice, from whoever it comes', async () => {
    using started = await startSignedIn();
    const { secret } = await enrol(started);
    const [one, two] = [started.visitor(), started.visitor()];
    await logIn(one, ADA);
    await logIn(two, ADA);
    await started.clock.advance(STEP_MS);
    const code = started.codeNow(secret);
    expect((await one.post(paths.secondStep, { code })).status).toBe(303);
    expect((await two.post(paths.secondStep, { code })).status).toBe(401);
  });

  test('takes each backup code once, however it is typed', async () => {
    using started = await startSignedIn();
    const { codes } = await enrol(started);
    const other = started.visitor();
    await logIn(other, ADA);
    const code = ` ${codes[0]?.toUpperCase().replace('-', ' ')}`;
    expect((await other.post(paths.secondStep, { code })).status).toBe(303);
    await logIn(other, ADA);
    expect((await other.post(paths.secondStep, { code })).status).toBe(401);
  });

  test('cannot be guessed: after five wrong codes every further one waits, from any browser', async () => {
    using started = await startSignedIn();
    await enrol(started);
    const guess = async () => {
      const other = started.visitor();
      await logIn(other, ADA);
      return other.post(paths.secondStep, { code: '000000' });
    };
    for (let i = 0; i < PER_CODE.burst; i++) expect((await guess()).status).toBe(401);
    const refused = await guess();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '300']);
  });

  test('has its first step forgotten after five minutes, or by a new password', async () => {
    using started = await startSignedIn();
    const { user } = started;
    const { secret } = await enrol(started);
    const late = started.visitor();
    await logIn(late, ADA);
    await started.clock.advance(5 * 60_000);
    const answer = await late.post(paths.secondStep, { code: started.codeNow(secret) });
    expect(answer.headers.get('location')).toBe('/login');
    const overtaken = started.visitor();
    await logIn(overtaken, ADA);
    started.auth.users.setPassword(user, 'plain another', { kind: 'command-line' });
    const second = await overtaken.post(paths.secondStep, { code: started.codeNow(secret) });
    expect(second.headers.get('location')).toBe('/login');
  });

  test.each(['', 'x', 'x.y', 'eyJ9.AAAA'])('takes no ticket that it did not sign: %p', async (ticket) => {
    using started = startPeople();
    started.made(ADA);
    const visitor = started.visitor();
    visitor.cookies.set(STEP_COOKIE, ticket);
    const answer = await visitor.post(paths.secondStep, { code: '000000' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/login']);
  });

  test('ends every other session when it is turned on, and needs a code to be turned off', async () => {
    using started = await startSignedIn();
    const [visitor, other] = [started.ada, started.visitor()];
    await logIn(other, ADA);
    const { codes } = await enrol(started);
    expect(await started.viewerOf(other.request())).toBeUndefined();
    expect(await started.viewerOf(visitor.request())).toBeDefined();
    // Neither a new secret nor turning it off is to be had with the session alone.
    await visitor.post(paths.secondFactor);
    const [user] = started.auth.users.list();
    expect(user && started.auth.secondFactor.pending(user)).toBeUndefined();
    expect((await visitor.post(`${paths.secondFactor}/off`, { code: '000000' })).status).toBe(422);
    expect(started.auth.users.list()[0]?.hasSecondFactor).toBe(true);
    const off = await visitor.post(`${paths.secondFactor}/off`, { code: codes[3] ?? '' });
    expect(off.headers.get('location')).toBe('/settings?done=second-factor-off');
    expect((await logIn(started.visitor(), ADA)).headers.get('location')).toBe(paths.secondFactor);
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

  test('sees nothing else where the config requires one', async () => {
    using started = await startSignedIn({ operatorsNeedSecondFactor: true });
    const { ada: visitor } = started;
    expect(await started.viewerOf(visitor.request())).toBeUndefined();
    expect((await visitor.get('/login')).headers.get('location')).toBe(paths.secondFactor);
    expect(await (await visitor.get(paths.secondFactor)).text()).not.toContain('Not now');
    await enrol(started);
    expect(await started.viewerOf(visitor.request())).toMatchObject({ email: ADA });
  });

  test('is any user whose password is right: a customer is not asked', async () => {
    using started = startPeople({ operatorsNeedSecondFactor: true });
    const account = started.accounts.create('acme', 'trial', COMMAND_LINE);
    if (account.kind !== 'account') throw new Error(account.kind);
    started.made(ADA, { role: 'customer', accountId: account.account.id });
    const visitor = started.visitor();
    const answer = await visitor.post('/login', { email: ADA, password: PASSWORD });
    expect(answer.headers.get('location')).toBe('/');
    expect(await started.viewerOf(visitor.request())).toBeDefined();
  });
});
