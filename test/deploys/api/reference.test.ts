import { Value } from '@sinclair/typebox/value';
import { describe, expect, test } from 'bun:test';
import { PROGRAMS_PATH } from '../../../deploys/api/programs.ts';
import { ProgramRecord } from '../../../deploys/api/schema.ts';
import { startDeploys, watchedOf } from '../started.ts';

const ask = async (path: string) => {
  await using deploys = startDeploys(watchedOf('A'));
  return deploys.answer(new Request(`http://localhost${path}`));
};
type Operation = {
  parameters: { name: string; in: string; required: boolean }[];
  security: Record<string, unknown>[];
  responses: Record<string, { headers?: object; content: { 'application/json': Json } }>;
};
type Json = { schema: { $ref: string }; example?: unknown; examples?: Record<string, { value: unknown }> };
type Document = {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { securitySchemes: Record<string, object>; schemas: Record<string, object> };
};
const documentOf = async (): Promise<Document> => (await ask('/openapi/json')).json() as Promise<Document>; // read below field by field

describe('the OpenAPI document', () => {
  test('describes the endpoint and health, and nothing that is plumbing', async () => {
    const { openapi, paths, servers } = await documentOf();
    expect(openapi).toStartWith('3.1');
    expect(Object.entries(paths).map(([path, item]) => [path, Object.keys(item)])).toEqual([
      [PROGRAMS_PATH, ['get']],
      ['/health', ['get']],
    ]);
    expect(servers).toEqual([{ url: 'https://console.example.com' }]);
  });

  test('names the parameter and the three ways of sending a key (spec 4.1, 5.2)', async () => {
    const { paths, components } = await documentOf();
    const operation = paths[PROGRAMS_PATH]?.['get'];
    expect(operation?.parameters).toMatchObject([{ name: 'program_id', in: 'query', required: false }]);
    expect(operation?.security.flatMap(Object.keys)).toEqual(Object.keys(components.securitySchemes));
    expect(Object.values(components.securitySchemes)).toMatchObject([
      { in: 'header', name: 'x-token' },
      { scheme: 'bearer' },
      { in: 'query', name: 'api-key' },
    ]);
  });

  test('has every status with its texts, and Retry-After and WWW-Authenticate where they are sent (spec 7.1)', async () => {
    const responses = (await documentOf()).paths[PROGRAMS_PATH]?.['get']?.responses ?? {};
    const texts = Object.entries(responses).flatMap(([status, { content }]) =>
      Object.values(content['application/json'].examples ?? {}).map(({ value }) => [status, value]),
    );
    expect(texts).toEqual([
      ['400', { error: 'Invalid program_id: abc' }],
      ['401', { error: 'Missing API key' }],
      ['401', { error: 'Invalid or inactive API key' }],
      ['429', { error: 'Rate limit exceeded' }],
      ['500', { error: 'Internal error' }],
      ['503', { error: 'not available yet' }],
      ['503', { error: 'Key check unavailable' }],
    ]);
    const having = (header: string) =>
      Object.keys(responses).filter((status) => header in Object(responses[status]?.headers));
    expect(having('Retry-After')).toEqual(['429', '503']);
    expect(having('WWW-Authenticate')).toEqual(['401']);
  });

  test('refers only to schemas that it has', async () => {
    const document = await documentOf();
    const refs = [...JSON.stringify(document.paths).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name,
    );
    expect(new Set(refs)).toEqual(new Set(['ProgramsAnswer', 'ErrorAnswer']));
    for (const name of refs) expect(Object.keys(document.components.schemas)).toContain(name ?? '');
  });
});

type Field = { type?: string; format?: string; const?: string; anyOf?: Field[]; items?: Field };
type Schema = {
  type: string;
  required: string[];
  additionalProperties: boolean;
  properties: Record<string, Field>;
};
/** A field's types in the words of the specification. */
function typesOf({ type, format, const: value, anyOf }: Field): string[] {
  if (anyOf !== undefined) return anyOf.flatMap(typesOf);
  return [value ?? (format === undefined ? String(type) : `${type} ${format}`)];
}

describe('the schemas of the OpenAPI document', () => {
  const tableOf = async (name: string) => {
    const schema = (await documentOf()).components.schemas[name] as Schema; // read below field by field
    expect([schema.type, schema.additionalProperties]).toEqual(['object', false]);
    expect(schema.required).toEqual(Object.keys(schema.properties));
    return Object.entries(schema.properties).map(([field, types]) => [field, typesOf(types)]);
  };

  test('have every field of a program record with its type (spec 2.1)', async () => {
    expect(await tableOf('ProgramRecord')).toEqual([
      ['program_id', ['string']],
      ['label', ['string']],
      ['status', ['upgradeable', 'frozen', 'other_loader', 'missing']],
      ['upgrade_authority', ['string', 'null']],
      ['deploy_slot', ['integer', 'null']],
      ['deployed_at', ['string date-time', 'null']],
    ]);
  });

  test('have every field of the answer with its type, and its programs are the records (spec 2.2)', async () => {
    expect(await tableOf('ProgramsAnswer')).toEqual([
      ['checked_at', ['string date-time']],
      ['programs', ['array']],
    ]);
    const { ProgramRecord, ProgramsAnswer } = (await documentOf()).components.schemas;
    expect((ProgramsAnswer as Schema).properties['programs']?.items).toEqual(ProgramRecord as Field); // read above
  });

  test('have an error text (spec 7.1)', async () => {
    expect(await tableOf('ErrorAnswer')).toEqual([['error', ['string']]]);
  });

  test('hold nothing of the library that made them', async () => {
    expect(JSON.stringify(await documentOf())).not.toMatch(/"\$id"|"default"|"format":"integer"/);
  });

  test('refuse a slot that is text or a fraction', () => {
    const { deploy_slot } = ProgramRecord.properties;
    const values = [5, null, '5', 5.5, undefined];
    expect(values.map((value) => Value.Check(deploy_slot, value))).toEqual([true, true, false, false, false]);
  });
});

describe('the reference page', () => {
  test('asks no other origin for anything, and its policy forbids it too', async () => {
    const response = await ask('/openapi');
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toStartWith("default-src 'none'");
    const page = await response.text();
    expect(page).not.toMatch(/<(script|link|img|iframe)|src=|url\(|@import/);
    expect([...page.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual(['/openapi/json']);
  });

  test('tells every field, every error text and every way of sending a key', async () => {
    const page = await (await ask('/openapi')).text();
    const words =
      'checked_at programs program_id label status upgrade_authority deploy_slot deployed_at x-token api-key Retry-After';
    const texts =
      'Missing API key,Invalid or inactive API key,Rate limit exceeded,not available yet,Key check unavailable,Authorization: Bearer';
    for (const word of [...words.split(' '), ...texts.split(','), PROGRAMS_PATH])
      expect(page).toContain(word);
  });

  test('shows what must be escaped as text', async () => {
    const page = await (await ask('/openapi')).text();
    expect(page).toContain('x-token: &lt;API_KEY&gt;');
    expect(page).not.toContain('<API_KEY>');
  });
});

test('M9 before a first reading deploys is alive and not ready', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  const at = async (path: string) => {
    const response = await deploys.answer(new Request(`http://localhost/health${path}`));
    return [response.status, await response.text()] as const;
  };
  const unread = expect.stringContaining('have not been read');
  expect([await at('/live'), await at('/ready'), await at('')]).toEqual([
    [200, 'ok\n'],
    [503, unread],
    [503, unread],
  ]);
  await deploys.watch();
  expect((await at('/ready'))[0]).toBe(200);
});

test.each(['/health', '/health/ready', '/openapi'])(
  '%s answers HEAD, and 405 to what it does not know',
  async (path) => {
    await using deploys = startDeploys(watchedOf('A'));
    const status = async (method: string) =>
      (await deploys.answer(new Request(`http://localhost${path}`, { method }))).status;
    expect([await status('HEAD'), await status('POST')]).toEqual([path === '/openapi' ? 200 : 503, 405]);
  },
);

test('/ leads a person to the reference page, also by HEAD', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  const at = (method: string) => deploys.answer(new Request('http://localhost/', { method }));
  for (const method of ['GET', 'HEAD']) {
    const response = await at(method);
    expect([response.status, response.headers.get('location')]).toEqual([302, '/openapi']);
    expect(await response.text()).toBe('');
  }
  expect((await at('POST')).status).toBe(405);
});
