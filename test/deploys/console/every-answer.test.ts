import { afterEach, beforeEach, expect, test } from 'bun:test';
import { CONTENT_SECURITY_POLICY } from '../../../deploys/console/security-headers.ts';
import { ORIGIN } from '../auth/people.ts';
import { filled, formPathsOf, goodForm, type Owner, pathsOf, startOwned, stored } from './walks.ts';
import type { World } from './world.ts';

let world: World;
let ann: Owner;
beforeEach(async () => void ({ world, ann } = await startOwned()));
afterEach(() => world[Symbol.dispose]());

/** A form as it stands, with exactly these headers. */
function send(path: string, headers: Record<string, string>) {
  const to = filled(path, ann);
  const body = new URLSearchParams(goodForm(to, ann));
  const { cookie } = path.startsWith('/operator/') ? world.operator : ann;
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
  const before = stored(world);
  const paths = await formPathsOf(world, ann);
  expect(paths.length).toBeGreaterThan(30);
  for (const path of paths) {
    const answer = await send(path, headers);
    expect([path, answer.status, answer.headers.get('set-cookie')]).toEqual([path, 403, null]);
  }
  expect(stored(world)).toEqual(before);
});

test.each(['text/plain', 'application/json', 'multipart/form-data; boundary=x', ''])(
  'a body of type %p is no form on any route, and changes nothing',
  async (type) => {
    const before = stored(world);
    for (const path of await formPathsOf(world, ann)) {
      const answer = await send(path, { 'sec-fetch-site': 'same-origin', 'content-type': type });
      expect([path, answer.status]).toEqual([path, 415]);
    }
    expect(stored(world)).toEqual(before);
  },
);

test('every response has the policy and is kept by no cache, by any method, for everybody', async () => {
  const askers = { nobody: '', customer: ann.cookie, operator: world.operator.cookie };
  for (const [who, cookie] of Object.entries(askers))
    for (const path of [...pathsOf(world), '/accounts/99/keys', '/assets/nothing.js'])
      for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
        const { headers } = await world.operator.ask(filled(path, ann), {
          method,
          headers: { cookie, 'sec-fetch-site': 'cross-site' },
        });
        if (path.startsWith('/assets/') && method !== 'GET' && method !== 'HEAD') continue; // the API's own words
        const names = [
          'content-security-policy',
          'cache-control',
          'x-content-type-options',
          'referrer-policy',
        ];
        const found = [who, method, path, ...names.map((name) => headers.get(name))];
        const wanted = [CONTENT_SECURITY_POLICY, 'no-store', 'nosniff', 'same-origin'];
        expect(found).toEqual([who, method, path, ...wanted]);
        const to = headers.get('location');
        if (to !== null) expect([path, to.startsWith('/') && !to.startsWith('//')]).toEqual([path, true]);
      }
});
