import { describe, expect, test } from 'bun:test';
import { createApp } from '../../../deploys/server.ts';
import { CUSTOMER, OPERATOR, ORIGIN, startConsole } from './started.tsx';

/** The app with its console for a viewer, or without one. */
function startApp(console: ReturnType<typeof startConsole> | undefined) {
  const app = createApp({
    answerPrograms: () => Response.json({}),
    health: () => ({ isWell: true, sentence: 'well' }),
    noteAnswer: () => {},
    noteBroken: (error) => {
      throw error;
    },
    publicUrl: new URL(ORIGIN),
    console,
  });
  return (path: string, accept = 'text/html,*/*') =>
    Promise.resolve(app.handle(new Request(ORIGIN + path, { headers: { accept } })));
}

describe('beside the API', () => {
  test.each([
    [undefined, '/login'],
    [CUSTOMER, '/accounts/7/overview'],
    [OPERATOR, '/operator/accounts'],
    [{ ...CUSTOMER, accountId: undefined }, '/settings'],
  ] as const)('/ sends %p to %s', async (viewer, path) => {
    const response = await startApp(startConsole(viewer))('/');
    expect([response.status, response.headers.get('location')]).toEqual([303, path]);
  });

  test.each([
    ['/nothing', 'text/html,*/*', 'text/html; charset=utf-8'],
    ['/nothing', '*/*', 'application/json;charset=utf-8'],
    ['/api/v1/nothing', 'text/html,*/*', 'application/json;charset=utf-8'],
  ])('the 404 of %s for one who takes %s is %s', async (path, accept, type) => {
    const response = await startApp(startConsole(CUSTOMER))(path, accept);
    expect([response.status, response.headers.get('content-type')]).toEqual([404, type]);
  });

  test('no page stands in the document of the API', async () => {
    const response = await startApp(startConsole(CUSTOMER))('/openapi/json');
    const { paths } = (await response.json()) as { paths: Record<string, unknown> }; // an OpenAPI document
    expect(Object.keys(paths).toSorted()).toEqual(['/api/v1/program-deploys/programs', '/health']);
  });
});
