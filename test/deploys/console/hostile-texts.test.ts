import { expect, test } from 'bun:test';
import { addressOf } from '../../fakes/chain.ts';
import { seededStatus } from './seed.ts';
import { filled, formPathsOf, goodForm, own, pathsOf, type Texts, whoMay } from './walks.ts';
import { startWorld } from './world.ts';

/** Leaves an attribute, then begins an element; as it stands it is in no page that escapes. */
const HOSTILE = `" onx=1 '><b>javascript:&quot;`;
const RAW = /" onx=|<b>|javascript:&quot;/;

const TEXTS: Texts = {
  account: `a ${HOSTILE}`,
  email: `o'x&lt;b&gt;@evil.example`,
  key: `k ${HOSTILE}`,
  host: 'hooks.example.com',
  path: `/javascript:alert(1)?q=${HOSTILE.replaceAll(' ', '+')}`,
  description: `d ${HOSTILE}`,
  agent: `u ${HOSTILE}`,
  answer: `<script>alert(1)</script>${HOSTILE}`,
  answerHeaders: [
    ['X-Answer', HOSTILE],
    ['Content-Type', `text/html;${HOSTILE}`],
    ['Location', 'javascript:alert(1)'],
  ],
};

const NAMES = 'q key method token done shown webhook program actor action since test'.split(' ');
const QUERY = new URLSearchParams([
  ...NAMES.map((name) => [name, HOSTILE] as [string, string]),
  ['next', `javascript:alert(1)//${HOSTILE}`],
]);

async function startHostile() {
  const [good] = seededStatus().backends;
  if (good === undefined) throw new Error('the seed has backends');
  const backend = { ...good, name: HOSTILE, why: HOSTILE, profile: HOSTILE, lanes: [HOSTILE] };
  const world = startWorld({
    programs: [{ address: addressOf('A'), label: `p ${HOSTILE}` }],
    gateways: ['10.0.0.2:9464'],
    statusOf: () => Response.json({ ...seededStatus(), version: HOSTILE, backends: [backend] }),
  });
  const owner = await own(world, TEXTS);
  const by = { kind: 'operator', userId: world.operator.user.id } as const;
  world.accounts.addCredits(owner.account, { credits: 1, reason: HOSTILE, once: 'a' }, by);
  world.note({
    atMs: world.clock.now(),
    actor: by,
    action: 'user.odd',
    subject: HOSTILE,
    detail: { [HOSTILE]: HOSTILE },
  });
  world.count([{ accountId: owner.accountId, keyId: HOSTILE, method: HOSTILE, calls: 1, refused: 1 }]);
  return { world, owner };
}

/** Everything in a page that a browser would take for markup must be the console's own. */
function expectCalm(where: string, html: string) {
  expect([where, RAW.exec(html)?.[0]]).toEqual([where, undefined]);
  expect([where, html.includes("o'x&lt;b&gt;@evil")]).toEqual([where, false]);
  const tags = html.match(/<[a-z][^\s>]*(?:"[^"]*"|[^">])*>/gi) ?? [];
  for (const tag of tags) {
    const names = [...tag.matchAll(/\s([^\s=>"]+)(?:="[^"]*")?/g)].map(([, name = '']) => name.toLowerCase());
    expect([where, tag, names.filter((name) => name.startsWith('on') || name === 'style')]).toEqual([
      where,
      tag,
      [],
    ]);
    const to = /\s(?:href|src|action|formaction|hx-get)="([^"]*)"/.exec(tag)?.[1];
    if (to !== undefined)
      expect([where, tag, /^(?:\/(?!\/)|#|https:\/\/)/.test(to)]).toEqual([where, tag, true]);
  }
}

test('what others chose is text on every page, and leads nowhere', async () => {
  const { world, owner } = await startHostile();
  let seen = '';
  for (const path of pathsOf(world))
    for (const query of ['', `?${QUERY}`]) {
      const answer = await whoMay(world, path, owner).ask(`${filled(path, owner)}${query}`);
      if (answer.headers.get('content-type')?.startsWith('text/html') !== true) continue;
      const html = await answer.text();
      expectCalm(`${path}${query}`, html);
      seen += html;
    }
  // All of it was on some page: what is not there would not have been tested.
  const shown = [...'akdup'].map((letter) => `${letter} &quot; onx`);
  for (const text of [...shown, '&lt;script>alert(1)', "o'x&amp;lt;b"])
    expect([text, seen.includes(text)]).toEqual([text, true]);
  world[Symbol.dispose]();
}, 30_000);

test('what comes back with a refused form is text on every page', async () => {
  const { world, owner } = await startHostile();
  let refused = 0;
  for (const path of await formPathsOf(world, owner)) {
    const body = new URLSearchParams(goodForm(path, owner));
    for (const name of body.keys()) body.set(name, HOSTILE);
    if (path.endsWith('/pause') || path.endsWith('/logout')) continue;
    const answer = await whoMay(world, path, owner).ask(filled(path, owner), { method: 'POST', body });
    if (answer.status === 422) refused++;
    if (answer.status !== 303) expectCalm(path, await answer.text());
    else expect(answer.headers.get('location')).toStartWith('/');
  }
  expect(refused).toBeGreaterThan(8);
  world[Symbol.dispose]();
}, 30_000);
