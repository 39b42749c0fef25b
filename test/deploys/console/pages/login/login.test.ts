import { describe, expect, test } from 'bun:test';
import { SESSION_COOKIE } from '../../../../../deploys/auth/sessions.ts';
import { logIn, PASSWORD, startPeople } from '../../../auth/people.ts';

const ADA = 'ada@example.com';

describe('the settings', () => {
  test.each(['/settings', '/settings/second-factor'])(
    '%s: send whoever is not signed in to the login and back',
    async (path) => {
      using started = startPeople();
      const answer = await started.visitor().get(`${path}?a=b`);
      const next = encodeURIComponent(`${path}?a=b`);
      expect([answer.status, answer.headers.get('location')]).toEqual([303, `/login?next=${next}`]);
    },
  );

  test('a new password ends every other session and keeps this one', async () => {
    using started = startPeople();
    started.made(ADA);
    const [visitor, other] = [started.visitor(), started.visitor()];
    await logIn(visitor, ADA);
    await logIn(other, ADA);
    const fields = { password: PASSWORD, 'new-password': 'another four plain words' };
    const answer = await visitor.post('/settings/password', fields);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/settings?done=password-changed']);
    expect(await started.viewerOf(visitor.request())).toBeDefined();
    expect(await started.viewerOf(other.request())).toBeUndefined();
    expect((await logIn(started.visitor(), ADA)).status).toBe(401);
    expect(started.audit.list({ limit: 1 })).toMatchObject([
      { action: 'user.set-password', actorKind: 'operator' },
    ]);
  });

  test.each([
    [{ password: 'wrong', 'new-password': 'another four plain words' }, 'Incorrect password.'],
    [{ password: PASSWORD, 'new-password': 'short' }, 'at least 12'],
    [{ password: PASSWORD, 'new-password': ADA }, "can't be your email"],
    [{}, 'Incorrect password.'],
  ])('a password is not changed by %p', async (fields, sentence) => {
    using started = startPeople();
    started.made(ADA);
    const visitor = started.visitor();
    await logIn(visitor, ADA);
    const answer = await visitor.post('/settings/password', fields);
    expect(answer.status).toBe(422);
    expect(await answer.text()).toContain(sentence);
    expect((await logIn(started.visitor(), ADA)).status).toBe(303);
  });

  test('the password now cannot be guessed through a session that was left open', async () => {
    using started = startPeople();
    started.made(ADA);
    const visitor = started.visitor();
    await logIn(visitor, ADA);
    const statuses: number[] = [];
    for (let i = 0; i < 11; i++)
      statuses.push((await visitor.post('/settings/password', { password: `guess ${i}` })).status);
    expect(statuses).toEqual([...Array(10).fill(422), 429]);
  });

  test('list the sessions with what each browser said of itself, escaped, and end the others', async () => {
    using started = startPeople();
    started.made(ADA);
    const [visitor, other] = [started.visitor(), started.visitor()];
    const agent = '<img src=x onerror=alert(1)>';
    await visitor.post(
      '/login',
      { email: ADA, password: PASSWORD },
      {
        'sec-fetch-site': 'same-origin',
        'user-agent': agent,
      },
    );
    await logIn(other, ADA);
    const page = await (await visitor.get('/settings')).text();
    expect(page).toContain('&lt;img src=x onerror=alert(1)>');
    expect(page).not.toContain(agent);
    expect(page.match(/<tr/g)).toHaveLength(3);
    await visitor.post('/settings/sign-out-others');
    expect(await started.viewerOf(other.request())).toBeUndefined();
    expect(await started.viewerOf(visitor.request())).toBeDefined();
  });

  test('of a user who was removed meanwhile are nobody’s', async () => {
    using started = startPeople();
    const user = started.made(ADA);
    const visitor = started.visitor();
    await logIn(visitor, ADA);
    started.auth.users.remove(user, { kind: 'command-line' });
    expect(visitor.cookies.has(SESSION_COOKIE)).toBe(true);
    expect((await visitor.post('/settings/sign-out-others')).headers.get('location')).toBe('/login');
  });
});
