import { Value } from '@sinclair/typebox/value';
import { beforeAll, expect, test } from 'bun:test';
import { PROGRAMS_PATH } from '../../../deploys/api/programs.ts';
import { WEBHOOKS_PATH } from '../../../deploys/api/webhook-routes.ts';
import { ProgramRecord } from '../../../deploys/api/schema.ts';
import { startDeploys, watchedOf } from '../started.ts';

type Operation = {
  parameters: { name: string; in: string; required: boolean }[];
  security: Record<string, unknown>[];
  responses: Record<string, { headers?: object; content: { 'application/json': Json } }>;
};
type Json = { examples?: Record<string, { value: unknown }> };
type Schema = { required: string[]; additionalProperties: boolean; properties: Record<string, object> };
type Document = {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { securitySchemes: Record<string, object>; schemas: Record<string, Schema> };
};

let document: Document;
let headers: Headers;
let page: string;
beforeAll(async () => {
  await using deploys = startDeploys(watchedOf('A'));
  const ask = (path: string) => deploys.answer(new Request(`http://localhost${path}`));
  document = (await (await ask('/openapi/json')).json()) as Document; // read below field by field
  const reference = await ask('/openapi');
  headers = reference.headers;
  page = await reference.text();
});

test('the OpenAPI document describes the endpoint, health and the three ways of sending a key, and no plumbing', () => {
  const { openapi, paths, servers, components } = document;
  expect(openapi).toStartWith('3.1');
  const others = Object.entries(paths).filter(([path]) => !path.startsWith(WEBHOOKS_PATH));
  expect(others.map(([path, item]) => [path, Object.keys(item)])).toEqual([
    [PROGRAMS_PATH, ['get']],
    ['/health', ['get']],
  ]);
  expect(servers).toEqual([{ url: 'https://console.example.com' }]);
  const operation = paths[PROGRAMS_PATH]?.['get'];
  expect(operation?.parameters).toMatchObject([{ name: 'program_id', in: 'query', required: false }]);
  expect(operation?.security.flatMap(Object.keys)).toEqual(Object.keys(components.securitySchemes));
  expect(Object.values(components.securitySchemes)).toMatchObject([
    { in: 'header', name: 'x-token' },
    { scheme: 'bearer' },
    { in: 'query', name: 'api-key' },
  ]);
});

test('it has every status with its texts, and Retry-After and WWW-Authenticate where they are sent (§3.2 401, §3.2 429, §3.2 503)', () => {
  const responses = document.paths[PROGRAMS_PATH]?.['get']?.responses ?? {};
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
  expect([having('Retry-After'), having('WWW-Authenticate')]).toEqual([['429', '503'], ['401']]);
});

test('its schemas are closed, all their fields are sent, and they hold nothing of the library that made them', () => {
  const { schemas } = document.components;
  for (const { required, additionalProperties, properties } of Object.values(schemas))
    expect([additionalProperties, required]).toEqual([false, Object.keys(properties)]);
  const refs = [...JSON.stringify(document.paths).matchAll(/"#\/components\/schemas\/(\w+)"/g)];
  const named = refs.map(([, name = '']) => name);
  expect(named).toContain('ProgramsAnswer');
  expect(named.filter((name) => !(name in schemas))).toEqual([]);
  expect(JSON.stringify(schemas)).not.toMatch(/"\$id"|"default"|"format":"integer"/);
  const { deploy_slot } = ProgramRecord.properties;
  const values = [5, null, '5', 5.5, undefined];
  expect(values.map((value) => Value.Check(deploy_slot, value))).toEqual([true, true, false, false, false]);
});

test('the reference page asks no other origin for anything, its policy forbids it too, and it escapes', () => {
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(headers.get('content-security-policy')).toStartWith("default-src 'none'");
  expect(page).not.toMatch(/<(script|link|img|iframe)|src=|url\(|@import/);
  expect([...page.matchAll(/href="([^"]*)"/g)].map(([, href]) => href)).toEqual(['/openapi/json']);
  expect(page).toContain('x-token: &lt;API_KEY&gt;');
  expect(page).not.toContain('<API_KEY>');
});

test('M9 before a first reading deploys is alive and not ready (§7)', async () => {
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

test('what can only be read answers HEAD as GET, and 405 to anything else; / leads to the reference page', async () => {
  await using deploys = startDeploys(watchedOf('A'));
  const at = (path: string, method: string) =>
    deploys.answer(new Request(`http://localhost${path}`, { method }));
  const paths = { '/health': 503, '/health/ready': 503, '/openapi': 200, '/': 302 };
  for (const [path, status] of Object.entries(paths)) {
    expect([path, (await at(path, 'HEAD')).status]).toEqual([path, status]);
    expect([path, (await at(path, 'POST')).status]).toEqual([path, 405]);
  }
  expect((await at('/', 'GET')).headers.get('location')).toBe('/openapi');
});
