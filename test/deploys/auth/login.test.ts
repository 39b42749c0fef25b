import { describe, expect, test } from 'bun:test';
import { PER_ACCOUNT, PER_ADDRESS } from '../../../deploys/auth/login.ts';
import { SESSION_COOKIE, SESSION_MS } from '../../../deploys/auth/sessions.ts';
import { ADA, COMMAND_LINE, logIn, PASSWORD, startPeople, startSignedIn } from './people.ts';

const wrong = { email: ADA, password: 'not the password', next: '/' };

describe('a login', () => {
  test('with the right password begins a session and sends to where one wanted to go', async () => {
    using started = startPeople();
    const account = started.accounts.create('acme', 'trial', COMMAND_LINE);
    if (account.kind !== 'account') throw new Error(account.kind);
    const { id } = account.account;
    const user = started.made('bob@example.com', { role: 'customer', accountId: id });
    const visitor = started.visitor();
    const answer = await logIn(visitor, 'Bob@Example.com ', '/accounts/1/keys?page=2');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/accounts/1/keys?page=2']);
    expect(await started.viewerOf(visitor.request())).toEqual({
      userId: user.id,
      email: 'bob@example.com',
      role: 'customer',
      accountId: id,
    });
  });

  test('sets a cookie that no script, no plain http and no other host can see', async () => {
    using started = startPeople();
    started.made(ADA);
    const answer = await logIn(started.visitor(), ADA);
    const [cookie = ''] = answer.headers.getSetCookie();
    expect(cookie).toMatch(
      /^__Host-sluice=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax$/,
    );
  });

  test('says the same for an unknown e-mail, a wrong password and a user without one, after the same work', async () => {
    const compared: string[] = [];
    using started = startPeople(
      {},
      {
        hash: () => Promise.resolve('x'),
        verify: (password, hash) => {
          compared.push(hash.startsWith('$argon2id$v=19$m=65536,t=2,p=1$') ? 'nobody' : 'somebody');
          return Promise.resolve(hash === `plain ${password}`);
        },
      },
    );
    started.made(ADA);
    started.store.run(
      "INSERT INTO users (id, email, role, created_at_ms) VALUES ('x', 'sso@example.com', 'operator', 0)",
    );
    const texts = await Promise.all(
      [ADA, 'nobody@example.com', 'no e-mail', 'sso@example.com'].map(async (email) => {
        const answer = await started.visitor().post('/login', { ...wrong, email });
        return [answer.status, (await answer.text()).replace(email, 'X')];
      }),
    );
    expect(new Set(texts.map(String)).size).toBe(1);
    expect(texts[0]?.[0]).toBe(401);
    expect(compared.toSorted()).toEqual(['nobody', 'nobody', 'nobody', 'somebody']);
  });

  test.each([
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    'javascript:alert(1)',
    '/\t/evil',
    '',
  ])('never leads to another origin: next=%s', async (next) => {
    using started = startPeople();
    started.made(ADA, { role: 'operator', accountId: undefined });
    const visitor = started.visitor();
    await logIn(visitor, ADA, next);
    const again = await visitor.get(`/login?next=${encodeURIComponent(next)}`);
    expect(again.headers.get('location')).toBe('/');
  });
});

describe('a session', () => {
  test('is a new one at every login: a cookie that was planted before is worth nothing after', async () => {
    using started = startPeople();
    started.made(ADA);
    const visitor = started.visitor();
    visitor.cookies.set(SESSION_COOKIE, 'planted');
    await logIn(visitor, ADA);
    const first = visitor.cookies.get(SESSION_COOKIE);
    expect(first).not.toBe('planted');
    await logIn(visitor, ADA);
    const second = visitor.cookies.get(SESSION_COOKIE);
    expect(second).not.toBe(first);
    for (const [token, isSomebody] of [
      ['planted', false],
      [first, false],
      [second, true],
    ] as const) {
      visitor.cookies.set(SESSION_COOKIE, token ?? '');
      expect((await started.viewerOf(visitor.request())) !== undefined).toBe(isSomebody);
    }
  });

  test('is kept as a hash alone', async () => {
    using started = await startSignedIn();
    const { ada: visitor } = started;
    const rows = JSON.stringify(started.store.query('SELECT * FROM sessions').values());
    expect(rows).not.toContain(visitor.cookies.get(SESSION_COOKIE) ?? 'nothing');
  });

  test('ends after 12 hours without use', async () => {
    using started = await startSignedIn();
    const { ada: visitor } = started;
    await started.clock.advance(SESSION_MS.idle - 1);
    expect(await started.viewerOf(visitor.request())).toBeDefined();
    await started.clock.advance(SESSION_MS.idle - 1);
    expect(await started.viewerOf(visitor.request())).toBeDefined();
    await started.clock.advance(SESSION_MS.idle);
    expect(await started.viewerOf(visitor.request())).toBeUndefined();
  });

  test('is not used by a page that stands open and refreshes itself, but by a form on it', async () => {
    using started = await startSignedIn();
    const { ada: visitor } = started;
    const part = { headers: { 'hx-request': 'true' } };
    await started.clock.advance(SESSION_MS.idle - 1);
    expect(await started.viewerOf(visitor.request('/', { ...part, method: 'POST' }))).toBeDefined();
    await started.clock.advance(SESSION_MS.idle - 1);
    expect(await started.viewerOf(visitor.request('/', part))).toBeDefined();
    await started.clock.advance(1);
    expect(await started.viewerOf(visitor.request('/', part))).toBeUndefined();
  });

  test('ends after 30 days however much it is used', async () => {
    using started = await startSignedIn();
    const { ada: visitor } = started;
    const hours = SESSION_MS.absolute / 3_600_000;
    for (let passed = 11; passed < hours; passed += 11) {
      await started.clock.advance(11 * 3_600_000);
      expect(await started.viewerOf(visitor.request())).toBeDefined();
    }
    await started.clock.advance(11 * 3_600_000);
    expect(await started.viewerOf(visitor.request())).toBeUndefined();
  });

  test('ends at once when its user is removed', async () => {
    using started = await startSignedIn();
    const { ada: visitor, user } = started;
    started.auth.users.remove(user, { kind: 'command-line' });
    expect(await started.viewerOf(visitor.request())).toBeUndefined();
    expect(started.store.query('SELECT * FROM sessions').all()).toEqual([]);
  });

  test('ends by signing out, on the server too', async () => {
    using started = await startSignedIn();
    const { ada: visitor } = started;
    const before = visitor.request();
    const answer = await visitor.post('/logout');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/login']);
    expect(visitor.cookies.has(SESSION_COOKIE)).toBe(false);
    expect(await started.viewerOf(before)).toBeUndefined();
  });

  test('is one of twenty at most: the one used longest ago ends', async () => {
    using started = startPeople();
    started.made(ADA);
    const visitors = Array.from({ length: 21 }, () => started.visitor());
    for (const visitor of visitors) {
      await logIn(visitor, ADA);
      await started.clock.advance(1);
    }
    const alive = await Promise.all(visitors.map((visitor) => started.viewerOf(visitor.request())));
    expect(alive.map((viewer) => viewer !== undefined)).toEqual([false, ...Array(20).fill(true)]);
  });

  test.each([
    '',
    'x',
    '__Host-sluice',
    '__Host-sluice=a; __Host-sluice=b',
    `__Host-sluice=${'x'.repeat(9_999)}`,
  ])('is nobody for a bad cookie: %#', async (cookie) => {
    using started = startPeople();
    expect(await started.viewerOf(new Request('https://a.example', { headers: { cookie } }))).toBeUndefined();
  });
});

test('a session beside another cookie of its name is nobody’s: one of them was planted', async () => {
  using started = await startSignedIn();
  const { ada: visitor } = started;
  const own = `${SESSION_COOKIE}=${visitor.cookies.get(SESSION_COOKIE)}`;
  const asked = (cookie: string) =>
    started.viewerOf(new Request('https://console.example.com', { headers: { cookie } }));
  expect(await asked(own)).toBeDefined();
  expect(await asked(`${own}; ${SESSION_COOKIE}=planted`)).toBeUndefined();
});

describe('guesses', () => {
  test('at one account are slowed down wherever they come from, with a wait that is true', async () => {
    using started = startPeople();
    started.made(ADA);
    const guess = (i: number) => started.visitor(`192.0.2.${i}`).post('/login', wrong);
    for (let i = 0; i < PER_ACCOUNT.burst; i++) expect((await guess(i)).status).toBe(401);
    const refused = await guess(99);
    expect(refused.status).toBe(429);
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBe(PER_ACCOUNT.refillMs / 1_000);
    // The right password waits too, else the answer would tell which guess was right.
    expect((await logIn(started.visitor('192.0.2.77'), ADA)).status).toBe(429);
    await started.clock.advance((seconds - 1) * 1_000);
    expect((await guess(100)).status).toBe(429);
    await started.clock.advance(1_000);
    expect((await logIn(started.visitor('192.0.2.77'), ADA)).status).toBe(303);
  });

  test('from one address are slowed down whichever account they are at', async () => {
    using started = startPeople();
    const guess = (i: number) => started.visitor().post('/login', { ...wrong, email: `u${i}@example.com` });
    for (let i = 0; i < PER_ADDRESS.burst; i++) expect((await guess(i)).status).toBe(401);
    expect((await guess(999)).status).toBe(429);
    expect((await started.visitor('192.0.2.2').post('/login', wrong)).status).toBe(401);
  });

  test('at once are no more than guesses in a row', async () => {
    using started = startPeople();
    started.made(ADA);
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => started.visitor(`192.0.2.${i}`).post('/login', wrong)),
    );
    const tried = answers.filter(({ status }) => status === 401).length;
    expect(tried).toBe(PER_ACCOUNT.burst);
  });

  test('do not count when they were right', async () => {
    using started = startPeople();
    started.made(ADA);
    for (let i = 0; i < 3 * PER_ACCOUNT.burst; i++)
      expect((await logIn(started.visitor(), ADA)).status).toBe(303);
  });
});

describe('while 200 addresses fail at the login', () => {
  const HOME = '192.0.2.1';

  test('P7 guesses at a login do not keep its user out at an address or in a browser that they have used', async () => {
    using started = startPeople();
    started.made(ADA);
    const signedIn = started.visitor(HOME);
    await logIn(signedIn, ADA);
    for (let i = 0; i < 200; i++) await started.visitor(`198.51.100.${i}`).post('/login', wrong);
    expect((await logIn(started.visitor('198.51.100.7'), ADA)).status).toBe(429);
    expect((await logIn(started.visitor(HOME), ADA)).status).toBe(303);
    const changed = await signedIn.post('/settings/password', {
      password: PASSWORD,
      'new-password': 'another four plain words',
    });
    expect(changed.headers.get('location')).toBe('/settings?done=password-changed');
  });

  test('P7 guesses from a known address are slowed down as all are', async () => {
    using started = startPeople();
    started.made(ADA);
    await logIn(started.visitor(HOME), ADA);
    const guesses = Array.from({ length: PER_ACCOUNT.burst + 1 }, () =>
      started.visitor(HOME).post('/login', wrong),
    );
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([...Array(PER_ACCOUNT.burst).fill(401), 429]);
  });

  test('P7 who is known goes before them, at the login and in a session', async () => {
    const held: (() => void)[] = [];
    let isHeld = false;
    const verify = async (password: string, hash: string) => {
      if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
      return hash === `plain ${password}`;
    };
    using started = startPeople({}, { hash: (password) => Promise.resolve(`plain ${password}`), verify });
    started.made(ADA);
    const signedIn = started.visitor('203.0.113.9');
    await logIn(signedIn, ADA);
    await logIn(started.visitor(HOME), ADA);
    isHeld = true;
    const full = Promise.withResolvers<void>();
    let refused = 0;
    const strangers = Array.from({ length: 200 }, async (_, i) => {
      const visitor = started.visitor(`198.51.100.${i}`);
      const { status } = await visitor.post('/login', { ...wrong, email: `u${i}@example.com` });
      if (status === 503 && ++refused === 168) full.resolve();
      return status;
    });
    await full.promise;
    const known = Promise.all([
      logIn(started.visitor(HOME), ADA),
      signedIn.post('/settings/password', {
        password: PASSWORD,
        'new-password': 'another four plain words',
      }),
    ]);
    let isOver = false;
    void known.finally(() => (isOver = true));
    let turns = 0;
    while (!isOver) {
      held.shift()?.();
      turns += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await known).map(({ status }) => status)).toEqual([303, 303]);
    expect(turns).toBeLessThan(32);
    isHeld = false;
    for (const release of held) release();
    expect((await Promise.all(strangers)).filter((status) => status === 401)).toHaveLength(32);
  });

  test('P7 addresses are kept as long as they are used, twenty of a user, and none in the clear', async () => {
    using started = startPeople();
    started.made(ADA);
    for (let i = 0; i < 21; i++) {
      await logIn(started.visitor(`192.0.2.${i}`), ADA);
      await started.clock.advance(1);
    }
    const rows = started.store.query<{ network: Uint8Array }, []>('SELECT network FROM known_networks').all();
    expect(rows).toHaveLength(20);
    expect(rows.some(({ network }) => Buffer.from(network).includes('192.0.2'))).toBe(false);
    for (let i = 0; i < PER_ACCOUNT.burst; i++)
      await started.visitor(`198.51.100.${i}`).post('/login', wrong);
    expect((await logIn(started.visitor('192.0.2.0'), ADA)).status).toBe(429);
    expect((await logIn(started.visitor('192.0.2.20'), ADA)).status).toBe(303);
    await started.clock.advance(90 * 24 * 3_600_000);
    for (let i = 0; i < PER_ACCOUNT.burst; i++)
      await started.visitor(`198.51.100.${i}`).post('/login', wrong);
    expect((await logIn(started.visitor('192.0.2.20'), ADA)).status).toBe(429);
  });
});

test('nobody is asked to wait for hashes without end: the answer is a 503 that says when to try again', async () => {
  const gate = Promise.withResolvers<boolean>();
  using started = startPeople({}, { hash: () => Promise.resolve('x'), verify: () => gate.promise });
  const attempts = Array.from({ length: 33 }, (_, i) =>
    started.visitor(`192.0.2.${i}`).post('/login', { ...wrong, email: `u${i}@example.com` }),
  );
  const first = await Promise.race(attempts);
  expect([first.status, first.headers.get('retry-after')]).toEqual([503, '2']);
  gate.resolve(false);
  const statuses = (await Promise.all(attempts)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 401)).toHaveLength(32);
});

test('the real hash is argon2id with 64 MiB and two passes, and lets the right password in', async () => {
  const { argon2id } = await import('../../../deploys/auth/passwords.ts');
  using started = startPeople({}, argon2id);
  const user = started.made(ADA);
  const hash = await argon2id.hash(PASSWORD);
  expect(hash).toStartWith('$argon2id$v=19$m=65536,t=2,');
  started.auth.users.setPassword(user, hash, { kind: 'command-line' });
  expect((await logIn(started.visitor(), ADA)).status).toBe(303);
  expect((await started.visitor().post('/login', wrong)).status).toBe(401);
});
