import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  type Asker,
  filled,
  goodForm,
  methodsOf,
  own,
  type Owner,
  pathsOf,
  plainTexts,
  startOwned,
  stored,
  whoMay,
} from './walks.ts';
import type { World } from './world.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

let world: World;
/** Owners of two accounts, each with everything that an account can have. */
let [ann, bob] = [undefined as never as Owner, undefined as never as Owner]; // made before each test
let before: ReturnType<typeof stored>;
beforeEach(async () => {
  ({ world, ann } = await startOwned());
  bob = await own(world, plainTexts('bob'));
  before = stored(world);
});
afterEach(() => world[Symbol.dispose]());

/** Asks as a page of the console does; a form is one that would do what it is for on what `of` has. */
function ask({ ask: send }: Asker, method: string, path: string, of: Owner) {
  const body = method === 'GET' || method === 'HEAD' ? {} : { body: new URLSearchParams(goodForm(path, of)) };
  return send(path, { method, ...body });
}

describe("another account's rows", () => {
  test('are on no route of their account and by no method, and asking changes and notes nothing', async () => {
    const paths = pathsOf(world).filter((path) => path.includes(':accountId'));
    expect(paths.length).toBeGreaterThan(25);
    for (const path of paths)
      for (const method of METHODS) {
        const answer = await ask(bob, method, filled(path, ann), ann);
        expect([method, path, answer.status]).toEqual([method, path, 404]);
        expect(await answer.text()).not.toContain('ann');
      }
    expect(stored(world)).toEqual(before);
  });

  test('are on no route of the own account by their ids, and asking changes and notes nothing', async () => {
    const paths = pathsOf(world).filter((path) => /:(?:key|webhook|delivery)Id/.test(path));
    expect(paths.length).toBeGreaterThan(15);
    for (const path of paths)
      for (const method of await methodsOf(world, path, ann)) {
        const answer = await ask(bob, method, filled(path, ann, bob.accountId), ann);
        expect([method, path, answer.status]).toEqual([method, path, 404]);
        expect(await answer.text()).not.toContain('ann');
      }
    expect(stored(world)).toEqual(before);
  });

  test('are on no page by the filters of its address, by which their owner finds them', async () => {
    const { keyId: key, webhookId: webhook, deliveryId } = ann;
    const filters: Record<string, string>[] = [
      { key },
      { webhook },
      { q: deliveryId },
      { test: deliveryId },
      { after: webhook },
      { q: 'ann' },
    ];
    const found = new Map<Owner, number>();
    for (const path of pathsOf(world).filter((each) => each.includes(':accountId')))
      for (const filter of filters)
        for (const owner of [ann, bob]) {
          const to = `${filled(path, owner)}?${new URLSearchParams(filter)}`;
          const text = (await (await ask(owner, 'GET', to, owner)).text()).replaceAll('value="ann"', '');
          if (/(?:key of|webhook of|answer to|browser of|account) ann|ann\.hooks/.test(text))
            found.set(owner, (found.get(owner) ?? 0) + 1);
        }
    expect(found.get(bob)).toBeUndefined();
    expect(found.get(ann)).toBeGreaterThan(60);
  });

  test.each(['customer', 'nobody'])('and the pages of operators are not there for a %s', async (who) => {
    const asker =
      who === 'nobody'
        ? { ask: (path: string, init?: RequestInit) => bob.ask(path, { ...init, headers: { cookie: '' } }) }
        : bob;
    const paths = pathsOf(world).filter((path) => path.startsWith('/operator/'));
    expect(paths.length).toBeGreaterThan(15);
    for (const path of paths)
      for (const method of METHODS) {
        const answer = await ask(asker, method, filled(path, ann), ann);
        expect([method, path, answer.status]).toEqual([method, path, who === 'nobody' ? 303 : 404]);
        if (who === 'nobody') expect(answer.headers.get('location')).toStartWith('/login');
      }
    expect(stored(world)).toEqual(before);
  });

  test('are reached by their owner, so that the walks above ask for what is there', async () => {
    for (const path of pathsOf(world).filter((each) => /:/.test(each)))
      for (const method of await methodsOf(world, path, ann)) {
        if (method !== 'POST') {
          const { status } = await ask(whoMay(world, path, ann), method, filled(path, ann), ann);
          expect([path, status]).toEqual([path, 200]);
        }
      }
  });
});
