import { START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { startWorld, type World } from './world.ts';

/** What stands in the rows of an account that its owner, or whoever answers its webhooks, chose. */
export type Texts = Readonly<{
  account: string;
  email: string;
  key: string;
  host: string;
  path: string;
  description: string;
  agent: string;
  answer: string;
  answerHeaders: readonly (readonly [string, string])[];
}>;

/** The texts of an account that means well. */
export const plainTexts = (name: string): Texts => ({
  account: `account ${name}`,
  email: `${name}@example.com`,
  key: `key of ${name}`,
  host: `${name}.hooks.example.com`,
  path: '/in',
  description: `webhook of ${name}`,
  agent: `browser of ${name}`,
  answer: `answer to ${name}`,
  answerHeaders: [['X-Answer', name]],
});

/** The session of a user of a new account with one of everything, and a delivery that was attempted. */
export async function own(world: World, texts: Texts) {
  const { clock, store, webhooks } = world;
  const customer = world.customer(texts.account, 'trial', texts.email, texts.agent);
  const { key, id: keyId } = world.addKey(texts.key, texts.account);
  const { description, host } = texts;
  const given = { url: `https://${host}${texts.path}`, description, programs: [addressOf('A')] };
  const { id: webhookId, secret } = await world.addWebhook(customer.by, given);
  const tested = webhooks.sendTest(customer.by, webhookId);
  if (tested.kind !== 'queued') throw new Error(tested.kind);
  const { deliveryId } = tested;
  await world.attemptDue(() => {
    const sent = answered(500, texts.answer);
    return sent.kind === 'answered' ? { ...sent, fields: texts.answerHeaders } : sent;
  });
  store.run(
    "UPDATE deliveries SET state = 'failed', next_attempt_at_ms = NULL, finished_at_ms = ? WHERE id = ?",
    [clock.now(), deliveryId],
  );
  store.run("UPDATE users SET totp_secret = x'00' WHERE id = ?", [customer.user.id]);
  /** Every secret that was ever shown: they must be on no page afterwards. */
  const secrets = [key, secret, customer.token];
  return {
    ...customer,
    account: texts.account,
    keyId,
    keyName: texts.key,
    webhookId,
    host,
    deliveryId,
    secrets,
  };
}

export type Owner = Awaited<ReturnType<typeof own>>;
export type Asker = Pick<Owner, 'ask'>;

/** The console with an account of Ann's that has one of everything. */
export async function startOwned() {
  const world = startWorld();
  return { world, ann: await own(world, plainTexts('ann')) };
}

/** The console's paths as they are registered, each once; those of files left out. */
export function pathsOf({ app }: World): readonly string[] {
  return [...new Set(app.routes.map(({ path }) => path).filter((path) => !path.includes('*')))];
}

/** Every path that takes a form. */
export async function formPathsOf(world: World, of: Owner): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const path of pathsOf(world))
    if ((await methodsOf(world, path, of)).includes('POST')) paths.push(path);
  return paths;
}

/** Who may use a path. */
export const whoMay = (world: World, path: string, owner: Owner): Asker =>
  path.startsWith('/operator/') ? world.operator : owner;

/** Everything that is stored, but for when sessions were used. */
export function stored({ store }: World): Readonly<Record<string, readonly unknown[]>> {
  const tables = store
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all();
  const rowsOf = (name: string) => store.query<object, []>(`SELECT * FROM ${name}`).all();
  return Object.fromEntries(
    tables.map(({ name }) => [name, rowsOf(name).map((row) => ({ ...row, used_at_ms: undefined }))]),
  );
}

/** A path of the table with the ids of what an account has; the account itself can be another. */
export function filled(path: string, of: Owner, accountId = of.accountId): string {
  return path
    .replace(':accountId', String(accountId))
    .replace(':id', String(of.accountId))
    .replace(':userId', of.user.id)
    .replace(':keyId', of.keyId)
    .replace(':webhookId', of.webhookId)
    .replace(':deliveryId', of.deliveryId)
    .replace(':programId', addressOf('A'));
}

/** Fields with which every form of the console does what it is for, on what an account has. */
export function goodForm(path: string, of: Owner): Record<string, string> {
  const [, noun = ''] = /\/(keys|webhooks|users)\//.exec(path) ?? [];
  const phrases: Record<string, string> = { keys: of.keyName, webhooks: of.host, users: of.user.email };
  return Object.fromEntries(
    new URLSearchParams(
      `name=another name&grace=1h&once=${'a'.repeat(21)}${path.length % 10}` +
        `&confirm=${encodeURIComponent(phrases[noun] ?? of.account)}&url=https://another.hooks.example.com/in` +
        `&description=another description&programs=all&takes-over=24h&seen=${START_MS}&since=0&plan=pro&credits=5` +
        `&reason=a reason&email=another@example.com&user=${'ab'.repeat(12)}&theme=dark&next=/`,
    ),
  );
}

/** The methods of a route, as it answers a method that none has. */
export async function methodsOf({ operator }: World, path: string, of: Owner): Promise<readonly string[]> {
  const { status, headers } = await operator.ask(filled(path, of), { method: 'OPTIONS' });
  const allow = headers.get('allow');
  if (status !== 405 || allow === null) throw new Error(`${path}: ${status}, without its methods`);
  return allow.split(', ');
}
