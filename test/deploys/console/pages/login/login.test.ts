import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { ADA, logIn, PASSWORD, startPeople } from '../../../auth/people.ts';

async function start() {
  const people = startPeople();
  const user = people.made(ADA);
  /** Two browsers in which the user is signed in. */
  const [visitor, other] = [people.visitor(), people.visitor()];
  for (const each of [visitor, other]) await logIn(each, ADA);
  return { ...people, user, one: visitor, other };
}

let world: Awaited<ReturnType<typeof start>>;
beforeEach(async () => void (world = await start()));
afterEach(() => world[Symbol.dispose]());

describe('the settings', () => {
  test('a new password ends every other session and keeps this one', async () => {
    const fields = { password: PASSWORD, 'new-password': 'another four plain words' };
    const { headers } = await world.one.post('/settings/password', fields);
    expect(headers.get('location')).toBe('/settings?done=password-changed');
    expect(await world.viewerOf(world.one.request())).toBeDefined();
    expect(await world.viewerOf(world.other.request())).toBeUndefined();
    expect((await logIn(world.visitor(), ADA)).status).toBe(401);
    const change = { action: 'user.set-password', actorKind: 'operator' };
    expect(world.audit.list({ limit: 1 })).toMatchObject([change]);
  });

  test.each([
    [{ password: 'wrong', 'new-password': 'another four plain words' }, 'Incorrect password.'],
    [{ password: PASSWORD, 'new-password': 'short' }, 'at least 12'],
    [{ password: PASSWORD, 'new-password': ADA }, "can't be your email"],
    [{}, 'Incorrect password.'],
  ])('a password is not changed by %p', async (fields, sentence) => {
    const answer = await world.one.post('/settings/password', fields);
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining(sentence)]);
    expect((await logIn(world.visitor(), ADA)).status).toBe(303);
  });

  test('the current password cannot be guessed through an open session', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 11; i++)
      statuses.push((await world.one.post('/settings/password', { password: `guess ${i}` })).status);
    expect(statuses).toEqual([...Array(10).fill(422), 429]);
  });

  test('list the sessions with what each browser says of itself, escaped, and end the others', async () => {
    const agent = '<img src=x onerror=alert(1)>';
    const headers = { 'sec-fetch-site': 'same-origin', 'user-agent': agent };
    const visitor = world.visitor();
    await visitor.post('/login', { email: ADA, password: PASSWORD }, headers);
    const page = await (await visitor.get('/settings')).text();
    expect(page).toContain('&lt;img src=x onerror=alert(1)>');
    expect(page).not.toContain(agent);
    expect(page.match(/<tr/g)).toHaveLength(4);
    await visitor.post('/settings/sign-out-others');
    expect(await world.viewerOf(world.other.request())).toBeUndefined();
    expect(await world.viewerOf(visitor.request())).toBeDefined();
  });
});
