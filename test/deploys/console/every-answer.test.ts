import { afterEach, beforeEach, expect, test } from 'bun:test';
import { CONTENT_SECURITY_POLICY } from '../../../deploys/console/security-headers.ts';
import { ORIGIN } from '../auth/people.ts';
import { filled, goodForm, methodsOf, plainTexts, startWholeWorld, type WholeWorld } from './whole-world.ts';

let world: WholeWorld;
let ann: Awaited<ReturnType<WholeWorld['own']>>;
beforeEach(async () => {
  world = startWholeWorld();
  ann = await world.own(plainTexts('ann'));
});
afterEach(() => world[Symbol.dispose]());

/** Who may do what stands behind a path. */
const whoMay = (path: string) => (path.startsWith('/operator/') ? world.operator : ann.session);

/** A form as it stands, with exactly these headers. */
function send(path: string, headers: Record<string, string>) {
  const to = filled(path, ann);
  const body = new URLSearchParams(goodForm(to, ann));
  const { cookie } = whoMay(path);
  return world.app.handle(
    new Request(`${ORIGIN}${to}`, { method: 'POST', body, headers: { cookie, ...headers } }),
  );
}

test.each([
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example.com' }],
  ['a sibling of the site', { 'sec-fetch-site': 'same-site', origin: 'https://evil.console.example.com' }],
  ['no page', { 'sec-fetch-site': 'none' }],
  ['a page that claims the origin alone', { 'sec-fetch-site': 'cross-site', origin: ORIGIN }],
  ['an old browser on another site', { origin: 'https://evil.example.com' }],
  ['a frame without an origin', { origin: 'null' }],
  ['something that says nothing', {}],
])('a form of %s is refused on every route that takes one, and changes nothing', async (_, headers) => {
  const before = world.stored();
  let forms = 0;
  for (const path of world.paths()) {
    if (!(await methodsOf(world, path, ann)).includes('POST')) continue;
    const answer = await send(path, headers);
    expect([path, answer.status, answer.headers.get('set-cookie')]).toEqual([path, 403, null]);
    forms += 1;
  }
  expect(forms).toBeGreaterThan(30);
  expect(world.stored()).toEqual(before);
});

test.each(['text/plain', 'application/json', 'multipart/form-data; boundary=x', ''])(
  'a body of type %p is no form on any route, and changes nothing',
  async (type) => {
    const before = world.stored();
    for (const path of world.paths()) {
      if (!(await methodsOf(world, path, ann)).includes('POST')) continue;
      const answer = await send(path, { 'sec-fetch-site': 'same-origin', 'content-type': type });
      expect([path, answer.status]).toEqual([path, 415]);
    }
    expect(world.stored()).toEqual(before);
  },
);

test('every answer carries the policy and is kept by no cache, by any method, whoever asks', async () => {
  const askers = { nobody: '', customer: ann.session.cookie, operator: world.operator.cookie };
  for (const [who, cookie] of Object.entries(askers))
    for (const path of [...world.paths(), '/accounts/99/keys', '/assets/nothing.js'])
      for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
        const { headers } = await world.operator.ask(filled(path, ann), {
          method,
          headers: { cookie, 'sec-fetch-site': 'cross-site' },
        });
        if (path.startsWith('/assets/') && method !== 'GET' && method !== 'HEAD') continue; // the API's own words
        expect([
          who,
          method,
          path,
          headers.get('content-security-policy'),
          headers.get('cache-control'),
          headers.get('x-content-type-options'),
          headers.get('referrer-policy'),
        ]).toEqual([who, method, path, CONTENT_SECURITY_POLICY, 'no-store', 'nosniff', 'same-origin']);
        const to = headers.get('location');
        if (to !== null) expect([path, to.startsWith('/') && !to.startsWith('//')]).toEqual([path, true]);
      }
});
