import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { PER_ACCOUNT, PER_ADDRESS } from '../../../deploys/auth/login.ts';
import { argon2id, HASHES_AT_ONCE, HASHES_WAITING_MAX } from '../../../deploys/auth/passwords.ts';
import { SESSION_COOKIE, SESSION_MS } from '../../../deploys/auth/sessions.ts';
import {
  ADA,
  COMMAND_LINE,
  customerOf,
  logIn,
  ORIGIN,
  PASSWORD,
  plainWork,
  startPeople,
  type Visitor,
} from './people.ts';

const wrong = { email: ADA, password: 'not the password', next: '/' };
const newPassword = { password: PASSWORD, 'new-password': 'another four plain words' };

let people: ReturnType<typeof startPeople>;
let ada: ReturnType<(typeof people)['made']>;
beforeEach(() => {
  people = startPeople();
  ada = people.made(ADA);
});
afterEach(() => people[Symbol.dispose]());

/** Begins anew, with other work for passwords. */
function startOver(work: Parameters<typeof startPeople>[1]): void {
  people[Symbol.dispose]();
  people = startPeople({}, work);
  ada = people.made(ADA);
}
const guess = (address: string, more: object = {}) =>
  people.visitor(address).post('/login', { ...wrong, ...more });
const statusOf = async (answer: Promise<Response>) => (await answer).status;
const isSomebody = async (visitor: Visitor) => (await people.viewerOf(visitor.request())) !== undefined;

describe('a login', () => {
  test('with the right password begins a session and sends to where one wanted to go', async () => {
    const place = customerOf(people);
    const { id } = people.made('bob@example.com', place);
    const visitor = people.visitor();
    const answer = await logIn(visitor, 'Bob@Example.com ', '/accounts/1/keys?page=2');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/accounts/1/keys?page=2']);
    // No script, no plain http and no other host can see it.
    expect(answer.headers.getSetCookie()[0]).toMatch(
      /^__Host-sluice=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax$/,
    );
    const viewer = await people.viewerOf(visitor.request());
    expect(viewer).toEqual({ userId: id, email: 'bob@example.com', ...place });
  });

  test('says the same for an unknown e-mail, a wrong password and a user without one, after the same work', async () => {
    const compared: string[] = [];
    startOver({
      hash: () => Promise.resolve('x'),
      verify: (_, hash) => {
        compared.push(hash.startsWith('$argon2id$v=19$m=65536,t=2,p=1$') ? 'nobody' : 'somebody');
        return Promise.resolve(false);
      },
    });
    people.store.run(
      "INSERT INTO users (id, email, role, created_at_ms) VALUES ('x', 'sso@example.com', 'operator', 0)",
    );
    const emails = [ADA, 'nobody@example.com', 'no e-mail', 'sso@example.com'];
    const texts = await Promise.all(
      emails.map(async (email) => {
        const answer = await guess('192.0.2.1', { email });
        return [answer.status, (await answer.text()).replace(email, 'X')];
      }),
    );
    expect(new Set(texts.map(String)).size).toBe(1);
    expect(texts[0]?.[0]).toBe(401);
    expect(compared.toSorted()).toEqual(['nobody', 'nobody', 'nobody', 'somebody']);
  });

  test('compares with argon2id of 64 MiB and two passes', async () => {
    startOver(argon2id);
    const hash = await argon2id.hash(PASSWORD);
    expect(hash).toStartWith('$argon2id$v=19$m=65536,t=2,');
    people.auth.users.setPassword(ada, hash, COMMAND_LINE);
    expect(await statusOf(logIn(people.visitor(), ADA))).toBe(303);
    expect(await statusOf(guess('192.0.2.1'))).toBe(401);
  });
});

describe('a session', () => {
  let visitor: Visitor;
  beforeEach(async () => {
    visitor = people.visitor();
    await logIn(visitor, ADA);
  });

  test('is a new one at every login, kept as a hash: a cookie that was planted before is worth nothing after', async () => {
    const other = people.visitor();
    other.cookies.set(SESSION_COOKIE, 'planted');
    const tokens = ['planted'];
    for (const _ of [1, 2]) {
      await logIn(other, ADA);
      tokens.push(other.cookies.get(SESSION_COOKIE) ?? '');
    }
    expect(JSON.stringify(people.store.query('SELECT * FROM sessions').values())).not.toContain(tokens[2]);
    const good: boolean[] = [];
    for (const token of tokens) {
      other.cookies.set(SESSION_COOKIE, token);
      good.push(await isSomebody(other));
    }
    expect(good).toEqual([false, false, true]);
  });

  test('ends after 12 hours without use, which no page is that stands open and refreshes itself (§6 console session)', async () => {
    const part = { headers: { 'hx-request': 'true' } };
    const viewer = (init: RequestInit = {}) => people.viewerOf(visitor.request('/', init));
    await people.clock.advance(SESSION_MS.idle - 1);
    expect(await viewer()).toBeDefined();
    await people.clock.advance(SESSION_MS.idle - 1);
    expect(await viewer({ ...part, method: 'POST' })).toBeDefined(); // a form on such a page is a use
    await people.clock.advance(SESSION_MS.idle - 1);
    expect(await viewer(part)).toBeDefined();
    await people.clock.advance(1);
    expect(await viewer()).toBeUndefined();
  });

  test('ends after 30 days however much it is used (§6 console session)', async () => {
    const elevenHours = 11 * 3_600_000;
    for (let passed = elevenHours; passed < SESSION_MS.absolute; passed += elevenHours) {
      await people.clock.advance(elevenHours);
      expect(await isSomebody(visitor)).toBe(true);
    }
    await people.clock.advance(elevenHours);
    expect(await isSomebody(visitor)).toBe(false);
  });

  test('ends at once, on the server too, by signing out and when its user is removed', async () => {
    const [before, other] = [visitor.request(), people.visitor()];
    await logIn(other, ADA);
    const answer = await visitor.post('/logout');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/login']);
    expect(visitor.cookies.has(SESSION_COOKIE)).toBe(false);
    expect(await people.viewerOf(before)).toBeUndefined();
    people.auth.users.remove(ada, COMMAND_LINE);
    expect(await isSomebody(other)).toBe(false);
    expect(people.store.query('SELECT * FROM sessions').all()).toEqual([]);
  });

  test('is one of twenty at most: the one used longest ago ends', async () => {
    const visitors = [visitor, ...Array.from({ length: 20 }, () => people.visitor())];
    for (const each of visitors.slice(1)) {
      await people.clock.advance(1);
      await logIn(each, ADA);
    }
    expect(await Promise.all(visitors.map(isSomebody))).toEqual([false, ...Array(20).fill(true)]);
  });

  test('is nobody’s with a bad cookie, or beside another of its name, of which one was planted', async () => {
    const own = `${SESSION_COOKIE}=${visitor.cookies.get(SESSION_COOKIE)}`;
    const viewer = (cookie: string) => people.viewerOf(new Request(ORIGIN, { headers: { cookie } }));
    expect(await viewer(own)).toBeDefined();
    const bad = ['', 'x', SESSION_COOKIE, `${SESSION_COOKIE}=${'x'.repeat(9_999)}`];
    for (const cookie of [...bad, `${own}; ${SESSION_COOKIE}=planted`])
      expect(await viewer(cookie)).toBeUndefined();
  });
});

describe('guesses', () => {
  test('at one account are slowed down wherever they come from, with a wait that is true', async () => {
    for (let i = 0; i < PER_ACCOUNT.burst; i++) expect(await statusOf(guess(`192.0.2.${i}`))).toBe(401);
    const refused = await guess('192.0.2.99');
    expect(refused.status).toBe(429);
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBe(PER_ACCOUNT.refillMs / 1_000);
    // The right password waits too, else the answer would tell which guess was right.
    expect(await statusOf(logIn(people.visitor('192.0.2.77'), ADA))).toBe(429);
    await people.clock.advance((seconds - 1) * 1_000);
    expect(await statusOf(guess('192.0.2.100'))).toBe(429);
    await people.clock.advance(1_000);
    // Right ones count for nothing.
    for (let i = 0; i < 2 * PER_ACCOUNT.burst; i++)
      expect(await statusOf(logIn(people.visitor('192.0.2.77'), ADA))).toBe(303);
  });

  test('from one address are slowed down whichever account they are at', async () => {
    const at = (i: number) => statusOf(guess('192.0.2.1', { email: `u${i}@example.com` }));
    for (let i = 0; i < PER_ADDRESS.burst; i++) expect(await at(i)).toBe(401);
    expect(await at(999)).toBe(429);
    expect(await statusOf(guess('192.0.2.2'))).toBe(401);
  });
});

describe('while 200 addresses fail at the login', () => {
  const HOME = '192.0.2.1';

  test('P7 guesses at a login do not keep its user out at an address or in a browser that they have used', async () => {
    const signedIn = people.visitor(HOME);
    await logIn(signedIn, ADA);
    for (let i = 0; i < 200; i++) await guess(`198.51.100.${i}`);
    expect(await statusOf(logIn(people.visitor('198.51.100.7'), ADA))).toBe(429);
    expect(await statusOf(logIn(people.visitor(HOME), ADA))).toBe(303);
    const changed = await signedIn.post('/settings/password', newPassword);
    expect(changed.headers.get('location')).toBe('/settings?done=password-changed');
    // Guesses from a known address are slowed down as all are.
    const statuses = await Promise.all(
      Array.from({ length: PER_ACCOUNT.burst + 1 }, () => statusOf(guess(HOME))),
    );
    expect(statuses.toSorted()).toEqual([...Array(PER_ACCOUNT.burst).fill(401), 429]);
  });

  test('P7 who is known waits apart from them, at the login and in a session; a full queue is a 503 with a wait', async () => {
    const held = Promise.withResolvers<boolean>();
    let isHeld = false;
    startOver({ ...plainWork, verify: (...of) => (isHeld ? held.promise : plainWork.verify(...of)) });
    const signedIn = people.visitor('203.0.113.9');
    await logIn(signedIn, ADA);
    await logIn(people.visitor(HOME), ADA);
    isHeld = true;
    const strangers = Array.from({ length: HASHES_AT_ONCE + HASHES_WAITING_MAX }, (_, i) =>
      statusOf(guess(`198.51.100.${i}`, { email: `u${i}@example.com` })),
    );
    const refused = () => guess('198.51.100.99', { email: 'u99@example.com' });
    expect((await refused()).headers.get('retry-after')).toBe('2');
    const known = [logIn(people.visitor(HOME), ADA), signedIn.post('/settings/password', newPassword)];
    expect(await statusOf(refused())).toBe(503); // by now those two wait
    held.resolve(true);
    expect(await Promise.all(known.map(statusOf))).toEqual([303, 303]);
    expect(new Set(await Promise.all(strangers))).toEqual(new Set([401]));
  });

  test('P7 addresses are kept as long as they are used, twenty of a user, and none in the clear', async () => {
    for (let i = 0; i < 21; i++) {
      await logIn(people.visitor(`192.0.2.${i}`), ADA);
      await people.clock.advance(1);
    }
    const rows = people.store.query<{ network: Uint8Array }, []>('SELECT network FROM known_networks').all();
    expect(rows).toHaveLength(20);
    expect(rows.some(({ network }) => Buffer.from(network).includes('192.0.2'))).toBe(false);
    const afterGuesses = async (address: string) => {
      for (let i = 0; i < PER_ACCOUNT.burst; i++) await guess(`198.51.100.${i}`);
      return statusOf(logIn(people.visitor(address), ADA));
    };
    expect([await afterGuesses('192.0.2.0'), await afterGuesses('192.0.2.20')]).toEqual([429, 303]);
    await people.clock.advance(90 * 24 * 3_600_000);
    expect(await afterGuesses('192.0.2.20')).toBe(429);
  });
});
