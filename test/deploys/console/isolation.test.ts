import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  filled,
  goodForm,
  methodsOf,
  type Owned,
  plainTexts,
  startWholeWorld,
  type WholeWorld,
} from './whole-world.ts';

type Member = Awaited<ReturnType<WholeWorld['own']>>;
type Asker = Pick<Member['session'], 'ask' | 'cookie'>;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

let world: WholeWorld;
/** Two accounts, each with a user and everything that an account can have. */
let [ann, bob]: readonly Member[] = [];
beforeEach(async () => {
  world = startWholeWorld();
  [ann, bob] = [await world.own(plainTexts('ann')), await world.own(plainTexts('bob'))];
});
afterEach(() => world[Symbol.dispose]());

function both(): Readonly<{ ann: Member; bob: Member }> {
  if (ann === undefined || bob === undefined) throw new Error('they are made before each test');
  return { ann, bob };
}

/** Asks as a page of the console does; a form is one that would do what it is for on what `of` has. */
function ask({ ask: send, cookie }: Asker, method: string, path: string, of: Owned) {
  const body = method === 'GET' || method === 'HEAD' ? {} : { body: new URLSearchParams(goodForm(path, of)) };
  return send(path, { method, headers: { cookie }, ...body });
}

describe("another account's rows", () => {
  test('are on no route of their account and by no method, and asking changes and notes nothing', async () => {
    const { ann: owner, bob: other } = both();
    const before = world.stored();
    const paths = world.paths().filter((path) => path.includes(':accountId'));
    expect(paths.length).toBeGreaterThan(25);
    for (const path of paths)
      for (const method of METHODS) {
        const answer = await ask(other.session, method, filled(path, owner), owner);
        expect([method, path, answer.status]).toEqual([method, path, 404]);
        expect(await answer.text()).not.toContain('ann');
      }
    expect(world.stored()).toEqual(before);
  });

  test('are on no route of the own account by their ids, and asking changes and notes nothing', async () => {
    const { ann: owner, bob: other } = both();
    const before = world.stored();
    const paths = world.paths().filter((path) => /:(?:key|webhook|delivery)Id/.test(path));
    expect(paths.length).toBeGreaterThan(15);
    for (const path of paths)
      for (const method of await methodsOf(world, path, owner)) {
        const answer = await ask(other.session, method, filled(path, owner, other.account.id), owner);
        expect([method, path, answer.status]).toEqual([method, path, 404]);
        expect(await answer.text()).not.toContain('ann');
      }
    expect(world.stored()).toEqual(before);
  });

  test('are on no page by what its address is narrowed to', async () => {
    const { ann: owner, bob: other } = both();
    const { keyId: key, webhookId: webhook, deliveryId } = owner;
    const ids = [
      { key },
      { webhook },
      { q: deliveryId },
      { test: deliveryId },
      { after: webhook },
      { q: 'ann' },
    ];
    for (const path of world.paths().filter((each) => each.includes(':accountId')))
      for (const id of ids) {
        const to = `${filled(path, other)}?${new URLSearchParams(id as Record<string, string>)}`; // each has one
        const text = (await (await ask(other.session, 'GET', to, other)).text()).replaceAll(
          'value="ann"',
          '',
        );
        expect(text).not.toMatch(
          /key of ann|ann\.hooks|webhook of ann|answer to ann|browser of ann|account ann/,
        );
      }
  });

  test.each(['customer', 'nobody'])('and the pages of operators are not there for a %s', async (who) => {
    const { ann: owner, bob: other } = both();
    const asker = who === 'nobody' ? { ...other.session, cookie: '' } : other.session;
    const before = world.stored();
    const paths = world.paths().filter((path) => path.startsWith('/operator/'));
    expect(paths.length).toBeGreaterThan(15);
    for (const path of paths)
      for (const method of METHODS) {
        const answer = await ask(asker, method, filled(path, owner), owner);
        expect([method, path, answer.status]).toEqual([method, path, who === 'nobody' ? 303 : 404]);
        if (who === 'nobody') expect(answer.headers.get('location')).toStartWith('/login');
      }
    expect(world.stored()).toEqual(before);
  });

  test('are reached by whose they are, so that the walks above ask for what is there', async () => {
    const { ann: owner } = both();
    for (const path of world.paths().filter((each) => /:/.test(each)))
      for (const method of await methodsOf(world, path, owner)) {
        const asker = path.startsWith('/operator/') ? world.operator : owner.session;
        if (method !== 'POST')
          expect([path, (await ask(asker, method, filled(path, owner), owner)).status]).toEqual([path, 200]);
      }
  });
});

/** A form that looks a host up and changes nothing. */
const LOOKS_ONLY = new Set(['/accounts/:accountId/webhooks/check']);
/** What a form needs to have been done before it, on the webhook of its account. */
const FIRST: Readonly<Record<string, string>> = {
  '/rotation/switch': '/rotation',
  '/rotation/cancel': '/rotation',
  '/resume': '/pause',
  '/operator/accounts/:id/resume': '/operator/accounts/:id/suspend',
};

test('every form of the walks does what it is for when it is sent by whose it is', async () => {
  for (const path of world.paths().filter((each) => each.includes(':') && !LOOKS_ONLY.has(each))) {
    using fresh = startWholeWorld();
    const owner = await fresh.own(plainTexts('ann'));
    const asker = path.startsWith('/operator/') ? fresh.operator : owner.session;
    if (!(await methodsOf(fresh, path, owner)).includes('POST')) continue;
    const [end = '', first = ''] = Object.entries(FIRST).findLast(([last]) => path.endsWith(last)) ?? [];
    if (first !== '') await ask(asker, 'POST', filled(path.replace(end, first), owner), owner);
    const before = fresh.stored();
    const { status } = await ask(asker, 'POST', filled(path, owner), owner);
    expect([path, status < 400, Bun.deepEquals(fresh.stored(), before)]).toEqual([path, true, false]);
  }
}, 20_000);
