import { WEBHOOKS_PATH } from '../../../deploys/api/webhook-routes.ts';
import { createSecretsOf } from '../../../deploys/webhooks/seal.ts';
import { startChain } from '../../fakes/chain.ts';
import { answered, createScriptedSend } from '../../fakes/scripted-send.ts';
import { startDeploys, watchedOf } from '../started.ts';
import { scriptedPolicy, testSeal, URL_TEXT } from './started.ts';

// oxlint-disable-next-line no-explicit-any -- every test reads another shape, and fails when it is not there
type Parsed = any;
type Document = { paths: Record<string, Record<string, unknown>>; components: { schemas: object } };

/** The whole app with webhooks, over a scripted network, for two accounts. All attempts end as `sent`. */
export function startWebhookApi(sent = answered(200)) {
  const { policy, names } = scriptedPolicy();
  names.set('away.example.com', Object.assign(new Error('away'), { code: 'ESERVFAIL' }));
  const send = createScriptedSend(() => sent);
  const deploys = startDeploys(watchedOf('A'), [startChain()], ':memory:', send, (store) => ({
    policy,
    secretsOf: createSecretsOf(store, testSeal),
  }));
  const otherKey = deploys.addKey();

  /** Status and parsed body; its members are checked where they are used. */
  async function ask(
    method: string,
    path: string,
    body?: unknown,
    key = deploys.key,
  ): Promise<[number, Parsed]> {
    const headers: Record<string, string> = key === '' ? {} : { 'x-token': key };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await deploys.answer(new Request(`http://localhost${WEBHOOKS_PATH}${path}`, init));
    const text = await response.text();
    return [response.status, text === '' ? undefined : JSON.parse(text)];
  }

  async function document(): Promise<Document> {
    const response = await deploys.answer(new Request('http://localhost/openapi/json'));
    return (await response.json()) as Document; // read member by member
  }

  return {
    ...deploys,
    otherKey,
    ask,
    document,
    /** The id of a webhook that must be made. */
    made: async (key = deploys.key): Promise<string> =>
      (await ask('POST', '', { url: URL_TEXT }, key))[1].webhook.id,
    /** Every operation of the document as method and path below `WEBHOOKS_PATH`, of one webhook and one delivery. */
    operations: async (id: string, delivery: string = id): Promise<[string, string][]> =>
      Object.entries((await document()).paths).flatMap(([path, item]) => {
        if (!path.startsWith(WEBHOOKS_PATH)) return [];
        const below = path.slice(WEBHOOKS_PATH.length).replace('{id}', id).replace('{delivery}', delivery);
        return Object.keys(item).map((method): [string, string] => [method.toUpperCase(), below]);
      }),
  };
}
