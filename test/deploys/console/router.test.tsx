/** @jsxImportSource preact */
import { describe, expect, test } from 'bun:test';
import { redirect } from '../../../deploys/console/paths.ts';
import { PostForm, TextField } from '../../../deploys/console/components/forms.tsx';
import { accountPage, openPage, operatorPage, type PageRoute } from '../../../deploys/console/page.ts';
import { CONTENT_SECURITY_POLICY } from '../../../deploys/console/security-headers.ts';
import { CUSTOMER, OPERATOR, ORIGIN, startConsole } from './started.tsx';
import { createVirtualClock } from '../../fakes/chain-clock.ts';

const PAGES: readonly PageRoute[] = [
  openPage({ path: '/open', show: () => ({ title: 'Open', body: <p>for all</p> }) }),
  accountPage({
    path: '/accounts/:accountId/keys',
    entry: ['API keys', 'key'],
    show: (_, { account }) => ({ title: 'Keys', body: <p>{`of ${account.name}`}</p> }),
    forms: {
      '': (_, { account, form }) =>
        redirect(
          `/accounts/${account.id}/keys?named=${encodeURIComponent(form.get('name') ?? '')}`,
          'key-created',
        ),
    },
  }),
  accountPage({
    path: '/accounts/:accountId/keys/:id',
    find: (_, { params }) => (params['id'] === 'k1' ? { name: 'first key' } : undefined),
    show: (_, { url, returned }, { name }) => ({
      title: name,
      body: (
        <>
          <p>{`${url.pathname} ${returned?.notice}`}</p>
          <PostForm action="/accounts/7/keys/k1/rename" button="Rename">
            <TextField name="name" label="Name" value="before" />
          </PostForm>
          <PostForm action="/accounts/7/keys/k1/revoke" button="Revoke">
            <TextField name="name" label="Name" value="other" />
          </PostForm>
        </>
      ),
    }),
    forms: {
      '/rename': () => ({ errors: { name: 'Bad name.' }, notice: 'look', retryAfterSeconds: 3 }),
      '/show': () => ({ title: 'Secret', body: <p>once</p> }),
      '/gone': () => undefined,
    },
  }),
  operatorPage({
    path: '/operator/queue',
    entry: ['Queue', 'send'],
    show: () => ({ title: 'Queue', body: <p>depth</p> }),
  }),
  operatorPage({
    path: '/operator/broken',
    show: () => {
      throw new Error('the reason <b>inside</b>');
    },
  }),
  openPage({ path: '/absent', isThere: () => false, show: () => ({ title: 'Absent', body: '' }) }),
  openPage({ path: '/act', forms: { '': () => redirect('/open') } }),
  openPage({ path: '/logout', forms: { '': () => redirect('/open') } }),
  openPage({
    path: '/settings',
    isReloaded: true,
    show: () => ({ title: 'Settings', body: '' }),
    forms: { '/password': () => ({ errors: { password: 'Wrong.' } }) },
  }),
];

describe('who may see what', () => {
  test.each([
    [undefined, '/open', 200],
    [CUSTOMER, '/accounts/7/keys', 200],
    [CUSTOMER, '/accounts/8/keys', 404],
    [CUSTOMER, '/accounts/07/keys', 404],
    [CUSTOMER, '/accounts/7e0/keys', 404],
    [CUSTOMER, '/operator/queue', 404],
    [OPERATOR, '/accounts/8/keys', 200],
    [OPERATOR, '/accounts/9/keys', 404],
    [OPERATOR, '/operator/queue', 200],
  ] as const)('%p at %s: %i', async (viewer, path, status) => {
    expect((await startConsole(viewer, PAGES).ask(path)).status).toBe(status);
  });

  test("another account's page is the same 404 as one that does not exist", async () => {
    const { ask } = startConsole(CUSTOMER, PAGES);
    const [foreign, absent] = await Promise.all([ask('/accounts/8/keys'), ask('/accounts/9/keys')]);
    expect((await foreign.text()).replaceAll('/accounts/8/', '/accounts/9/')).toBe(await absent.text());
  });

  test.each(['/accounts/7/keys', '/accounts/7/keys?cursor=a%26b', '/operator/queue'])(
    'without a session, %s redirects to the login and back',
    async (path) => {
      const response = await startConsole(undefined, PAGES).ask(path);
      expect(response.status).toBe(303);
      expect(response.headers.get('location')).toBe(`/login?next=${encodeURIComponent(path)}`);
    },
  );
});

describe('changes', () => {
  test('without Sec-Fetch-Site, a form is accepted by its origin', async () => {
    const init = { method: 'POST', body: new URLSearchParams(), headers: { origin: ORIGIN } };
    expect((await startConsole(CUSTOMER, PAGES).ask('/act', init)).status).toBe(303);
  });

  test('more changes than a user may make at once are refused, with the time to wait, and logging out is not (§6 console: changes of a user)', async () => {
    const taken: string[] = [];
    let left = 2;
    const { post, ask } = startConsole(CUSTOMER, PAGES, {
      takeChange(userId) {
        taken.push(userId);
        return left-- > 0 ? { kind: 'allowed' } : { kind: 'too-many', retryAfterSeconds: 7 };
      },
    });
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) statuses.push((await post('/accounts/7/keys', { name: 'a' })).status);
    expect(statuses).toEqual([303, 303, 429]);
    const refused = await post('/accounts/7/keys', { name: 'a' });
    expect(refused.headers.get('retry-after')).toBe('7');
    expect(await refused.text()).toContain('again in 7 s');
    expect((await post('/act', {})).status).toBe(429);
    expect((await post('/logout', {})).status).toBe(303);
    expect((await post('/accounts/8/keys', { name: 'a' })).status).toBe(404);
    expect((await ask('/accounts/7/keys')).status).toBe(200);
    expect(taken).toEqual(['u1', 'u1', 'u1', 'u1', 'u1']);
  });
});

/** A form whose last byte comes when `end` is called. */
function slowForm() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  void writer.write(Buffer.from('name='));
  const headers = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' };
  return { init: { method: 'POST', body: readable, headers }, end: () => void writer.close() };
}

test('a form that came while its session ended is not acted on', async () => {
  let viewer: typeof CUSTOMER | undefined = CUSTOMER;
  let done = 0;
  const forms = { '': () => new Response(String(++done)) };
  const change = accountPage({ path: '/accounts/:accountId/change', forms });
  const deps = { viewerOf: () => Promise.resolve(viewer) };
  const { ask } = startConsole(undefined, [change], deps);
  const { init, end } = slowForm();
  const answer = ask('/accounts/7/change', init);
  await new Promise((resolve) => setImmediate(resolve));
  viewer = undefined;
  end();
  expect((await answer).headers.get('location')).toBe('/login');
  expect(done).toBe(0);
});

test('a form that does not end in time is a 408 and changes nothing', async () => {
  const clock = createVirtualClock();
  const { ask } = startConsole(CUSTOMER, PAGES, { clock });
  const answer = ask('/accounts/7/keys', slowForm().init);
  await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(15_000);
  expect((await answer).status).toBe(408);
});

describe('a form that is refused', () => {
  const rename = async () =>
    startConsole(CUSTOMER, PAGES).post('/accounts/7/keys/k1/rename', { name: 'sent' });

  test('comes back on its page with what was sent and what is wrong, beside forms that are as they were', async () => {
    const answer = await rename();
    const html = await answer.text();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([422, '3']);
    expect(html).toContain('<p>/accounts/7/keys/k1 look</p>');
    expect(html.match(/value="(?:sent|before|other)"/g)).toEqual(['value="sent"', 'value="other"']);
    expect(html.match(/class="field-error"/g)).toHaveLength(1);
  });

  test.each([
    ['/accounts/7/keys/k2/rename', 404],
    ['/accounts/7/keys/k1/gone', 404],
    ['/accounts/7/keys/k1/show', 200],
  ])('%s answers %i', async (path, status) => {
    expect((await startConsole(CUSTOMER, PAGES).post(path, {})).status).toBe(status);
  });

  test('is reloaded by GET where its page says so', async () => {
    const { ask } = startConsole(CUSTOMER, PAGES);
    expect((await ask('/settings/password')).headers.get('location')).toBe('/settings');
    expect((await ask('/accounts/7/keys/k1/rename')).status).toBe(405);
  });
});

describe('methods', () => {
  test.each([
    ['/act', 'GET', 'POST'],
    ['/open', 'POST', 'GET, HEAD'],
    ['/accounts/7/keys', 'DELETE', 'GET, HEAD, POST'],
  ])('%s with %s is a 405 that names %s', async (path, method, allow) => {
    const response = await startConsole(CUSTOMER, PAGES).ask(path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
  });
});

test('a page that breaks is a 500 that tells the reason to the log alone, with the headers of every page', async () => {
  const { ask, broken } = startConsole(OPERATOR, PAGES);
  const response = await ask('/operator/broken');
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('the reason');
  expect(broken).toHaveLength(1);
  expect(response.headers.get('content-security-policy')).toBe(CONTENT_SECURITY_POLICY);
  expect(response.headers.get('cache-control')).toBe('no-store');
});

test('a full disk is a 503 that says so (E45)', async () => {
  const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  const viewerOf = () => Promise.reject(full);
  const { ask, broken } = startConsole(undefined, PAGES, { viewerOf });
  const response = await ask('/accounts/7/keys');
  expect([response.status, broken]).toEqual([503, [full]]);
  expect(await response.text()).toContain(
    'The database cannot be written now: the disk is full. Nothing was changed.',
  );
});

test('no change is taken while another copy of the database may be in use, but who may look may log in and out (E42)', async () => {
  const whyReadOnly = () => 'This database is older.';
  const { post, ask } = startConsole(CUSTOMER, PAGES, { whyReadOnly });
  const refused = await post('/accounts/7/keys', { name: 'new' });
  expect([refused.status, (await refused.text()).includes(whyReadOnly())]).toEqual([503, true]);
  expect([(await ask('/accounts/7/keys')).status, (await post('/logout', {})).status]).toEqual([200, 303]);
});

test('a session that cannot be looked up is a 500', async () => {
  const viewerOf = () => Promise.reject(new Error('database is gone'));
  const { ask, broken } = startConsole(undefined, PAGES, { viewerOf });
  expect((await ask('/accounts/7/keys')).status).toBe(500);
  expect(broken).toHaveLength(1);
});
