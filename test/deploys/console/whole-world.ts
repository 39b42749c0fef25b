import type { Account } from '../../../deploys/accounts/account-row.ts';
import { SESSION_COOKIE } from '../../../deploys/auth/sessions.ts';
import type { User } from '../../../deploys/auth/users.ts';
import { attempt } from '../../../deploys/delivery/send.ts';
import { createSecretsOf } from '../../../deploys/webhooks/seal.ts';
import { random } from '../auth/people.ts';
import { createEnqueue } from '../../../deploys/outbox/enqueue.ts';
import { createOutbox } from '../../../deploys/outbox/outbox.ts';
import { createWebhooks, type Webhooks } from '../../../deploys/webhooks/webhooks.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';
import { answered, createScriptedSend } from '../../fakes/scripted-send.ts';
import { never, scriptedPolicy, testSeal } from '../webhooks/started.ts';
import { type Options, startOperatorWorld } from './operator-world.ts';

const [A, B] = [addressOf('A'), addressOf('B')];

/** What an account of this world has, and the texts that tell its pages from another's. */
export type Owned = Readonly<{
  account: Account;
  user: User;
  keyId: string;
  keyName: string;
  webhookId: string;
  host: string;
  deliveryId: string;
  /** Every secret that was ever shown: they must be in no page after. */
  secrets: readonly string[];
}>;

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

/** Every page of the console as deploys serves it, with webhooks kept and signing up allowed. */
export function startWholeWorld(label = 'Program A', more: Pick<Options, 'gateways' | 'statusOf'> = {}) {
  let webhooks: Webhooks | undefined;
  const programs = [
    { address: A, label },
    { address: B, label: 'Program B' },
  ];
  const labelOf = (program: string) => programs.find(({ address }) => address === program)?.label ?? program;
  const world = startOperatorWorld({
    ...more,
    programs,
    signUp: true,
    webhooksIn: (store, clock) => {
      const enqueue = createEnqueue(store, labelOf, random);
      const isWatched = (address: string) => address === A || address === B;
      const { policy } = scriptedPolicy();
      const wake = () => undefined;
      return (webhooks = createWebhooks({
        store,
        clock,
        seal: testSeal,
        policy,
        isWatched,
        enqueue,
        random,
        wake,
      }));
    },
  });
  const { store, clock, keys, auth } = world;
  const outbox = createOutbox(store, random);
  const secretsOf = createSecretsOf(store, testSeal);

  /** Makes every attempt that is due now. */
  async function attemptDue(texts: Texts): Promise<void> {
    const { send } = createScriptedSend(() => {
      const sent = answered(500, texts.answer);
      return sent.kind === 'answered' ? { ...sent, fields: texts.answerHeaders } : sent;
    });
    const noteBroken = (error: unknown) => {
      throw error;
    };
    for (const claim of outbox.claim(clock.now(), []))
      outbox.finish([await attempt(claim, { send, secretsOf, clock, noteBroken }, never)]);
  }

  /** An account with a user, a key, a webhook and a delivery that was attempted. */
  async function own(texts: Texts): Promise<Owned & Readonly<{ session: ReturnType<typeof world.session> }>> {
    const account = world.account(texts.account);
    const user = world.made(texts.email, { role: 'customer', accountId: account.id });
    const by = { kind: 'user', userId: user.id } as const;
    const created = keys.create(account.name, texts.key, by);
    if (created.kind !== 'created') throw new Error(created.kind);
    const { key, id: keyId } = created.made;
    const url = `https://${texts.host}${texts.path}`;
    const given = { url, description: texts.description, programs: [A] };
    const webhook = await webhooks?.create({ accountId: account.id, actor: by }, given, never);
    if (webhook?.kind !== 'created') throw new Error(Bun.inspect(webhook));
    const tested = webhooks?.sendTest({ accountId: account.id, actor: by }, webhook.webhook.id);
    if (tested?.kind !== 'queued') throw new Error(tested?.kind);
    await attemptDue(texts);
    store.run(
      "UPDATE deliveries SET state = 'failed', next_attempt_at_ms = NULL, finished_at_ms = ? WHERE id = ?",
      [clock.now(), tested.deliveryId],
    );
    store.run("UPDATE users SET totp_secret = x'00' WHERE id = ?", [user.id]);
    const token = auth.sessions.begin(user.id, texts.agent, undefined);
    const secrets = [key, webhook.secret.reveal(), token];
    const { session } = world;
    return {
      account,
      user,
      keyId,
      keyName: texts.key,
      webhookId: webhook.webhook.id,
      host: texts.host,
      deliveryId: tested.deliveryId,
      secrets,
      session: { ...session(user), cookie: `${SESSION_COOKIE}=${token}` },
    };
  }

  /** The paths of the console's table as they were registered, each once; those of files left out. */
  function paths(): readonly string[] {
    const all = world.app.routes.map(({ path }) => path).filter((path) => !path.includes('*'));
    return [...new Set(all)];
  }

  /** Everything that is stored, but for when sessions were used. */
  function stored(): Readonly<Record<string, readonly unknown[]>> {
    const tables = store
      .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .all();
    return Object.fromEntries(
      tables.map(({ name }) => [
        name,
        store
          .query<Record<string, unknown>, []>(`SELECT * FROM ${name}`)
          .all()
          .map((row) => ({ ...row, used_at_ms: undefined })),
      ]),
    );
  }

  return { ...world, own, paths, stored, attemptDue };
}

export type WholeWorld = ReturnType<typeof startWholeWorld>;

/** A path of the table with the ids of what an account has; the account itself can be another. */
export function filled(path: string, of: Owned, accountId = of.account.id): string {
  return path
    .replace(':accountId', String(accountId))
    .replace(':id', String(of.account.id))
    .replace(':userId', of.user.id)
    .replace(':keyId', of.keyId)
    .replace(':webhookId', of.webhookId)
    .replace(':deliveryId', of.deliveryId)
    .replace(':programId', A);
}

/** Fields with which every form of the console does what it is for, on what an account has. */
export function goodForm(path: string, of: Owned): Record<string, string> {
  return {
    name: 'another name',
    grace: '1h',
    once: `${'a'.repeat(21)}${path.length % 10}`,
    confirm: path.includes('/keys/')
      ? of.keyName
      : path.includes('/webhooks/')
        ? of.host
        : phraseOf(path, of),
    url: 'https://another.hooks.example.com/in',
    description: 'another description',
    programs: 'all',
    'takes-over': '24h',
    seen: String(START_MS),
    since: '0',
    plan: 'pro',
    credits: '5',
    reason: 'a reason',
    email: 'another@example.com',
    user: 'ab'.repeat(12),
    theme: 'dark',
    next: '/',
  };
}

function phraseOf(path: string, { account, user }: Owned): string {
  return path.includes('/users/') ? user.email : account.name;
}

/** The methods that a route takes, as it says itself to an operator who asks with one that no route takes. */
export async function methodsOf(
  { operator }: WholeWorld,
  path: string,
  of: Owned,
): Promise<readonly string[]> {
  const { status, headers } = await operator.ask(filled(path, of), { method: 'OPTIONS' });
  const allow = headers.get('allow');
  if (status !== 405 || allow === null) throw new Error(`${path}: ${status}, and no word of its methods`);
  return allow.split(', ');
}
