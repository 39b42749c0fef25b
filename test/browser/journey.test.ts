import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { Secret } from '../../shared/secret.ts';
import { isSigned } from '../deploys/delivery/is-signed.ts';
import { createNamespace } from '../started/namespace.ts';
import { until } from '../started/stack.ts';
import { type StartedBrowser, startBrowser, type WatchedPage } from '../started/browser.ts';
import { lookAt } from './look-at.ts';
import { PAGES } from './pages.ts';
import { createLogin, setUpSecondFactor, signIn } from './people.ts';
import { HOOKS } from './world/place.ts';
import { type StartedWorld, startWorld, TRIAL_CREDITS } from './world/start.ts';

// Browsers and whole services on a busy machine take their time.
setDefaultTimeout(120_000);

const PROGRAM = 'Raydium AMM V4';
const ANN = 'ann@example.com';
const REASON = 'the trial goes on for a week';

const namespace = createNamespace();
afterAll(namespace[Symbol.dispose]);
const reason = namespace.reasonAgainst();
if (reason !== undefined) console.log(`The journey through the console is not tested here: ${reason}`);

/** A request as it came to the receiver. */
function arrived(text: string) {
  const field = (name: string) => new RegExp(`\r\n${name}: (.*)\r`, 'i').exec(text)?.[1] ?? '';
  const body = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1');
  const timestamp = field('x-service-timestamp');
  const signature = field('x-service-signature');
  const signedBy = (secret: string) =>
    isSigned(new Secret(secret), { timestamp, signature }, body, Date.now() / 1_000);
  return { event: JSON.parse(body.toString()) as any, delivery: field('x-service-delivery'), signedBy }; // oxlint-disable-line no-explicit-any -- compared member by member below
}

describe.skipIf(reason !== undefined)('an operator and a customer, in a browser', () => {
  let world: StartedWorld;
  let browser: StartedBrowser;
  /** The operator's and the customer's page, which stay open from test to test. */
  let ada: WatchedPage;
  let ann: WatchedPage;
  let anybody: WatchedPage;
  let operator: Page;
  let customer: Page;
  /** What the tests before have made. */
  let [password, key, secret] = ['', '', ''];
  const named = { account: '', user: '', key: '', program: '', webhook: '', delivery: '' };

  const main = (page: Page) => page.locator('main');
  /** The last name in a page's address. */
  const lastOf = (page: Page) => new URL(page.url()).pathname.split('/').at(-1) ?? '';
  const shown = async (page: Page) => ((await page.textContent('#secret')) ?? '').trim();
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  /** Follows an entry of the navigation. */
  const visit = async (page: Page, name: string) => {
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click();
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
  };

  beforeAll(async () => {
    [world, browser] = await Promise.all([startWorld(namespace), startBrowser()]);
    const { origin } = world;
    [ada, ann] = [await browser.open({ origin }), await browser.open({ origin })];
    anybody = await browser.open({ origin });
    [operator, customer] = [ada.page, ann.page];
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  test('the first operator comes by a link, with a second factor', async () => {
    await operator.goto(world.firstOperatorLink());
    await createLogin(operator, 'ada@example.com');
    await setUpSecondFactor(operator);
    await operator.getByRole('link', { name: 'I have saved them' }).click();
    expect(await operator.textContent('h1')).toBe('Accounts');
    expect(await lookAt(operator)).toEqual([]);
  });

  test('the operator makes an account on trial, and a login whose password is seen once', async () => {
    await operator.getByRole('link', { name: 'Add account' }).first().click();
    await operator.getByLabel('Name').fill('Acme');
    await button(operator, 'Add account').click();
    await operator.getByText('Account created.').waitFor();
    named.account = lastOf(operator);
    await operator.getByLabel('Email').fill(ANN);
    await button(operator, 'Add user').click();
    await operator.getByText('User added.').waitFor();
    password = await shown(operator);
    named.user = lastOf(operator);
    expect(await lookAt(operator)).toEqual([]);
    await operator.reload();
    expect(await operator.content()).not.toContain(password);
  });

  test('the customer signs in and is led to a first key, which is seen once', async () => {
    await customer.goto('/');
    await signIn(customer, ANN, password);
    expect(await customer.textContent('h1')).toBe('Overview');
    expect(await lookAt(customer)).toEqual([]);
    await visit(customer, 'API keys');
    expect(await lookAt(customer)).toEqual([]);
    await customer.getByRole('link', { name: 'Create your first key' }).click();
    await customer.getByLabel('Name').fill('indexer');
    await button(customer, 'Create key').click();
    await customer.getByText('API key created.').waitFor();
    key = await shown(customer);
    named.key = lastOf(customer);
    expect(key).toMatch(/^sluice_[0-9A-Za-z]{38}$/);
    expect(await lookAt(customer)).toEqual([]);
    await customer.reload();
    expect(await customer.content()).not.toContain(key);
  });

  test('calls with the key move the chart of the overview, by themselves', async () => {
    await visit(customer, 'Overview');
    const drawn = () =>
      customer.evaluate<string | undefined>("document.querySelector('#last-hour canvas')?.toDataURL()");
    const before = await until(drawn);
    for (let i = 0; i < 9; i++) expect((await world.call(key, 'getSlot')).status).toBe(200);
    await main(customer).getByText('9 requests, 0 errors').waitFor({ timeout: 60_000 });
    await until(async () => ![undefined, before].includes(await drawn()));
    await main(customer).getByText('Credits left').waitFor();
    expect(await main(customer).textContent()).toContain(String(TRIAL_CREDITS - 9));
    expect(await lookAt(customer)).toEqual([]);
    await visit(customer, 'Usage');
    await main(customer)
      .getByRole('row', { name: /getSlot/ })
      .first()
      .waitFor();
  });

  test('a webhook of a program is made, its secret is seen once, and a test is answered in place', async () => {
    await visit(customer, 'Programs');
    await customer.getByLabel('Search').fill(PROGRAM);
    await button(customer, 'Filter').click();
    await main(customer).getByRole('link', { name: PROGRAM, exact: true }).click();
    named.program = lastOf(customer);
    await customer.getByRole('link', { name: 'Add webhook' }).click();
    await customer.waitForLoadState('load'); // what is typed before the page's script has run is not looked at
    await customer.getByLabel('URL').fill(`https://${HOOKS}/in?a=b`);
    await customer.getByText('resolves to public addresses').waitFor();
    await customer.getByLabel('Search programs').fill(PROGRAM);
    await customer.getByText('1 found').waitFor();
    expect(await lookAt(customer)).toEqual([]);
    await button(customer, 'Add webhook').click();
    secret = await shown(customer);
    expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/);
    expect(await lookAt(customer)).toEqual([]);
    await customer.getByRole('link', { name: 'I have saved it' }).click();
    named.webhook = lastOf(customer);
    expect(await customer.content()).not.toContain(secret);

    await button(customer, 'Send test').click();
    await customer.getByText('Test: Endpoint returned 200').waitFor();
    const recent = customer.locator('.panel', { hasText: 'Recent deliveries' });
    await recent.getByText('Delivered').waitFor();
    expect(lastOf(customer)).toBe(named.webhook);
    expect(await lookAt(customer)).toEqual([]);
    const [visited] = (await world.visits()).map(arrived);
    expect(visited?.event.event).toBe('ping');
    expect(visited?.signedBy(secret)).toBe(true);
  });

  test('a real upgrade arrives, and is seen by itself in the list and in the drawer', async () => {
    await visit(customer, 'Deliveries');
    const slot = await world.upgrade(named.program);
    const text = `upgraded, slot ${slot.toLocaleString('en-US')}`;
    const row = main(customer).getByRole('row').filter({ hasText: text });
    await row.getByText('Delivered').waitFor({ timeout: 60_000 });
    expect(await lookAt(customer)).toEqual([]);
    const visited = (await world.visits()).map(arrived).at(-1);
    expect(visited?.event).toMatchObject({
      event: 'program.upgraded',
      data: { program_id: named.program, deploy_slot: slot },
    });
    expect(visited?.signedBy(secret)).toBe(true);
    named.delivery = visited?.delivery ?? '';

    await row.getByRole('link').click();
    const drawer = customer.getByRole('dialog');
    await drawer.getByText(visited?.delivery ?? '', { exact: true }).waitFor();
    await drawer.getByText('Attempt 1 of 6').waitFor();
    expect(await lookAt(customer)).toEqual([]);
    await button(customer, 'Close').click();
    await drawer.waitFor({ state: 'hidden' });
    await visit(customer, 'Programs');
    await customer.goto(`/accounts/${named.account}/programs/${named.program}`);
    await main(customer)
      .getByRole('rowheader', { name: slot.toLocaleString('en-US') })
      .waitFor();
  });

  test('credits that are used up refuse with 402 until the operator adds some, with a reason', async () => {
    const status = async () => (await world.call(key, 'getSlot')).status;
    let answered = 0;
    while ((await status()) === 200) answered++;
    expect(answered).toBe(TRIAL_CREDITS - 9);
    expect(await status()).toBe(402);
    await customer.goto(`/accounts/${named.account}/overview`);
    await main(customer)
      .getByText(/No credits left/)
      .first()
      .waitFor({ timeout: 60_000 });
    expect(await lookAt(customer)).toEqual([]);

    await operator.goto(`/operator/accounts/${named.account}`);
    await operator.getByText('Out of credits:').waitFor();
    expect(await lookAt(operator)).toEqual([]);
    await operator.getByRole('textbox', { name: 'Credits' }).fill('1,000');
    await operator.getByLabel('Reason').fill(REASON);
    await button(operator, 'Add credits').click();
    await operator.getByText('Credits added.').waitFor();
    await until(async () => (await status()) === 200);
    await visit(operator, 'Audit log');
    await main(operator).getByText(REASON).waitFor();
  });

  test('a revoked key is refused', async () => {
    await visit(customer, 'API keys');
    await main(customer).getByRole('link', { name: 'indexer' }).click();
    await customer.getByLabel('Type indexer to confirm').fill('indexer');
    await button(customer, 'Revoke key').click();
    await customer.getByText('API key revoked.').waitFor();
    await until(async () => (await world.call(key, 'getSlot')).status === 401);
    expect(await lookAt(customer)).toEqual([]);
  });

  test.each(Object.keys(PAGES))('%s is without a fault', async (route) => {
    const visit = PAGES[route];
    if (visit === undefined) throw new Error('unreachable: its own list');
    const { page } = { nobody: anybody, operator: ada, customer: ann }[visit.as];
    const answer = await page.goto(visit.to(named));
    expect(answer?.status()).toBe(200);
    expect(await lookAt(page)).toEqual([]);
  });

  test('no page had an error or a request to another origin', () => {
    expect([ada.faults, ann.faults, anybody.faults]).toEqual([[], [], []]);
  });
});
